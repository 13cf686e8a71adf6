/**
 * What `kubectl kustomize` makes of a folder of deploy/. Debian's kubectl has a kustomize that knows folders only as `bases`: for it the
 * same files are given in its words.
 */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, parseAllDocuments, stringify } from "yaml";
import { atEnd } from "../support/at-end.ts";
import { findTool } from "../support/find-tool.mjs";
import type { Manifest } from "./manifest-faults.ts";

export const DEPLOY = new URL("../../deploy", import.meta.url).pathname;

/** Beside them only files that are no part of what is applied. */
export const OVERLAYS = readdirSync(join(DEPLOY, "kubernetes"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

const run = promisify(execFile);
const folders: string[] = [];

atEnd(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

export async function kustomized(overlay: string): Promise<Manifest[]> {
  const kubectl = await findTool({
    files: ["kubectl"],
    packages: ["kubernetes-client"],
    need: "the tests of deploy/ need it",
    remedy: "macOS: brew install kubernetes-cli",
  });
  const { stdout: about } = await run(kubectl, ["version", "--client"]).catch(() =>
    run(kubectl, ["version", "--client", "--short"]),
  );
  const root = /Minor:"(1\d|20)\D/.test(about) || /v1\.(1\d|20)\./.test(about) ? await inOldWords() : DEPLOY;
  const { stdout, stderr } = await run(kubectl, ["kustomize", join(root, "kubernetes", overlay)], { maxBuffer: 2 ** 24 });
  if (/deprecated/i.test(stderr)) throw new Error(`kubectl kustomize ${overlay}: ${stderr}`);
  return parseAllDocuments(stdout).map((document) => document.toJS());
}

async function inOldWords(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "makegood-kustomize-"));
  folders.push(root);
  await cp(DEPLOY, root, { recursive: true });
  for (const name of OVERLAYS) {
    const path = join(root, "kubernetes", name, "kustomization.yaml");
    const { resources, ...rest } = parse(await readFile(path, "utf8")) as { resources: string[] };
    const isFolder = (one: string): boolean => !one.endsWith(".yaml");
    const old = { ...rest, bases: resources.filter(isFolder), resources: resources.filter((one) => !isFolder(one)) };
    await writeFile(path, stringify(old));
  }
  return root;
}
