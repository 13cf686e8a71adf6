/**
 * The key file: the newest key first, the one before it beside it, so that notes are signed by both while others learn the new one, and below
 * the public parts of all that signed before. Only its owner may read it. Everything that is trusted stands here, outside of the database.
 */
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { errorText, MakegoodError } from "../message/errors.ts";
import type { Random } from "../platform/random.ts";
import { type NoteKey, newKeyLine, parseKeys } from "./notes.ts";

/** How many keys of a file sign: the new one, and the one that others know already. */
const SIGN_MAX = 2;

export async function readKeys(path: string): Promise<NoteKey[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new MakegoodError(
      "invalid_config",
      `MAKEGOOD_EVIDENCE_KEY_FILE: ${errorText(error)}; \`makegood evidence keygen ${path}\` makes a key`,
    );
  });
  const keys = parseKeys(text);
  if (keys.length === 0) throw new MakegoodError("invalid_config", `MAKEGOOD_EVIDENCE_KEY_FILE: ${path} holds no key`);
  return keys;
}

/** Makes the file, or puts a new key before those that are there. Returns all of them, the newest first. */
export async function addKey(path: string, random: Random): Promise<NoteKey[]> {
  const before = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const lines = before.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const old = parseKeys(lines.join("\n")).map((key, i) => (i + 1 < SIGN_MAX ? (lines[i] as string) : key.verifier));
  const text = ["# the first keys sign, all verify; keep it away from the database", newKeyLine(random), ...old, ""].join("\n");
  await mkdir(dirname(path), { recursive: true });
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  return parseKeys(text);
}
