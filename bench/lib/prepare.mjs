// What must be there before a run: the peers' packages in bench/node_modules, and a fresh build of the product.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const benchPath = fileURLToPath(new URL("../", import.meta.url));
export const rootPath = fileURLToPath(new URL("../../", import.meta.url));

export function installPeers() {
  const wanted = Object.keys(JSON.parse(readFileSync(`${benchPath}package.json`, "utf8")).dependencies);
  if (wanted.every((name) => existsSync(`${benchPath}node_modules/${name}/package.json`))) return;
  console.log("installing the peers (npm ci in bench/)");
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], benchPath);
}

export function buildProduct() {
  if (!existsSync(`${rootPath}node_modules`)) throw new Error("the product is not installed: run npm ci in the root first");
  run("npm", ["run", "--silent", "build"], rootPath);
}

/** The version of a package as it is installed, of the bench or of the product. */
export function versionOf(name) {
  for (const base of [benchPath, rootPath]) {
    const path = `${base}node_modules/${name}/package.json`;
    if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")).version;
  }
  return "not installed";
}

export function productVersion() {
  const { version } = JSON.parse(readFileSync(`${rootPath}package.json`, "utf8"));
  const git = (...args) => spawnSync("git", args, { cwd: rootPath, encoding: "utf8" }).stdout?.trim() ?? "";
  const commit = git("rev-parse", "--short", "HEAD");
  const changed = git("status", "--porcelain", "--", "src") !== "";
  return commit === "" ? version : `${version} at ${commit}${changed ? " with uncommitted changes" : ""}`;
}

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed in ${cwd}`);
}
