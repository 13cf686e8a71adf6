/**
 * Signed notes in the form of C2SP (signed-note): a text, an empty line, and a line for each key that signed it, ed25519. Keys stand in
 * their own forms, one a line of a file; those that sign are private, those that are only listed still verify what they signed once.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { MakegoodError } from "../message/errors.ts";
import type { Random } from "../platform/random.ts";
import { sha256 } from "./merkle.ts";

const ED25519 = 1;
const PRIVATE = "PRIVATE+KEY+";
/** What DER says before the 32 bytes of a key. */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const SPKI = Buffer.from("302a300506032b6570032100", "hex");
const SIGNED_BY = /^\u2014 ([^ +]+) ([A-Za-z0-9+/]+={0,2})$/;

export interface NoteKey {
  readonly name: string;
  /** Four bytes in hex, by which a signature names its key. */
  readonly id: string;
  /** As others may have it: name+id+key. */
  readonly verifier: string;
  readonly publicKey: KeyObject;
  /** Null: it is only listed. */
  readonly privateKey: KeyObject | null;
}

function keyOf(name: string, seed: Buffer | null, given: Buffer | null): NoteKey {
  const privateKey = seed && createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
  const publicKey = privateKey
    ? createPublicKey(privateKey)
    : createPublicKey({ key: Buffer.concat([SPKI, given as Buffer]), format: "der", type: "spki" });
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(SPKI.length);
  const typed = Buffer.concat([Buffer.of(ED25519), raw]);
  const id = sha256(Buffer.from(`${name}\n`), typed)
    .subarray(0, 4)
    .toString("hex");
  return { name, id, verifier: `${name}+${id}+${typed.toString("base64")}`, publicKey, privateKey };
}

/** A new private key as a line of a key file. */
export function newKeyLine(random: Random, name = "makegood"): string {
  const seed = Buffer.from(random.bytes(32));
  const { id } = keyOf(name, seed, null);
  return `${PRIVATE}${name}+${id}+${Buffer.concat([Buffer.of(ED25519), seed]).toString("base64")}`;
}

/** Reads a key file: a key a line, those that sign first of all the newest; `#` begins a remark. No fault repeats a key. */
export function parseKeys(text: string): NoteKey[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.flatMap((line, i) => {
    if (line === "" || line.startsWith("#")) return [];
    const isPrivate = line.startsWith(PRIVATE);
    const [name = "", id, ...rest] = (isPrivate ? line.slice(PRIVATE.length) : line).split("+");
    const bytes = Buffer.from(rest.join("+"), "base64");
    if (name === "" || /\s/.test(name) || bytes.length !== 33 || bytes[0] !== ED25519) throw wrongKey(i, "is no ed25519 key");
    const key = keyOf(name, isPrivate ? bytes.subarray(1) : null, isPrivate ? null : bytes.subarray(1));
    if (key.id !== id) throw wrongKey(i, "does not fit its own id");
    return [key];
  });
}

const wrongKey = (line: number, what: string) =>
  new MakegoodError(
    "invalid_config",
    `the evidence key in line ${line + 1} ${what}: \`makegood evidence keygen FILE\` makes one`,
  );

/** `text` ends with a line break. Without a key that signs it is the text alone. */
export function signNote(text: string, keys: readonly NoteKey[]): string {
  const lines = keys.flatMap(({ name, id, privateKey }) => {
    if (privateKey === null) return [];
    const signature = Buffer.concat([Buffer.from(id, "hex"), sign(null, Buffer.from(text), privateKey)]);
    return [`\u2014 ${name} ${signature.toString("base64")}\n`];
  });
  return lines.length === 0 ? text : `${text}\n${lines.join("")}`;
}

/** none: unsigned. unknown: signed, and by no key that is trusted. bad: a trusted key's signature is not over this text. */
export type Signed = "trusted" | "unknown" | "bad" | "none";

export function readNote(note: string, trusted: readonly NoteKey[]): { readonly text: string; readonly signed: Signed } {
  const at = note.indexOf("\n\n");
  if (at < 0) return { text: note, signed: "none" };
  const text = note.slice(0, at + 1);
  const signatures = note
    .slice(at + 2)
    .split("\n")
    .filter((line) => line !== "");
  let signed: Signed = signatures.length === 0 ? "none" : "unknown";
  for (const line of signatures) {
    const [, name, base64 = ""] = SIGNED_BY.exec(line) ?? [];
    const bytes = Buffer.from(base64, "base64");
    const key = trusted.find((one) => one.name === name && one.id === bytes.subarray(0, 4).toString("hex"));
    if (!key) continue;
    if (!verify(null, Buffer.from(text), key.publicKey, bytes.subarray(4))) return { text, signed: "bad" };
    signed = "trusted";
  }
  return { text, signed };
}
