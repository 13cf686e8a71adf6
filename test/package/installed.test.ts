/**
 * C5 and C6 as users see them: `npm pack` in a clean tree, the tarball installed into an empty project, and everything that it promises
 * tried there: what is in it, its types for TypeScript 5.4 and ours, its doors, its command. The soak adds other versions of Node.
 */
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { links } from "../docs/references.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";
import { startShell } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { compileLines, misjudged, RIGHT, WRONG } from "../types/lines.ts";
import { install, newFolder, type Packed, pack, ROOT, run, runWell, textOf } from "./packed.ts";
import { PROGRAMS } from "./users.ts";

const SOAK = process.env.MAKEGOOD_SOAK === "1";
/** The oldest that our declarations are for, and what a project with it has. */
const BESIDE = ["typescript@5.4.5", "@types/node@20"];
const PACKING_MS = 300_000;
/** A machine with other work may be slow; a second try would only take as long again. */
const TRYING = { timeout: 240_000, retry: 0 };

interface Manifest {
  readonly version: string;
  readonly bin: { readonly makegood: string };
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>;
}

let folder = "";
let packed: Packed;
let project = "";
let manifest: Manifest;

beforeAll(async () => {
  folder = await newFolder();
  packed = await pack(folder);
  project = await install(folder, packed, BESIDE);
  manifest = JSON.parse(await textOf(project, "package.json")) as Manifest;
}, PACKING_MS);

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

const doors = () => Object.entries(manifest.exports).flatMap(([door, to]) => (typeof to === "string" ? [] : [{ door, ...to }]));
const texts = (ending: RegExp) =>
  Promise.all(
    packed.files.filter((path) => ending.test(path)).map(async (path) => ({ path, text: await textOf(project, path) })),
  );

describe("the tarball", () => {
  it("C5: holds what is needed, built from the sources of now, and nothing else", () => {
    const needed = ["README.md", "CHANGELOG.md", "LICENSE", "docs/guide/recovery.md", "docs/guide/receivers.md"];
    const targets = [manifest.bin.makegood, ...doors().flatMap((to) => [to.types, to.default])].map((path) => normalize(path));
    expect([...needed, ...targets].filter((path) => !packed.files.includes(path))).toEqual([]);
    const fits = /^(dist\/[\w./-]+(\.js|\.d\.ts)|docs\/[\w./-]+\.md|(README|CHANGELOG|CONTRIBUTING)\.md|LICENSE|package\.json)$/;
    expect(packed.files.filter((path) => !fits.test(path))).toEqual([]);
    expect(packed.files.filter((path) => /stale|\.map$|(^|\/)(test|bench|demo|src|examples|node_modules)\//.test(path))).toEqual(
      [],
    );
    expect(packed.bytes).toBeLessThan(1_700_000);
  });

  it("C5: every link of its documents leads to a file in it", async () => {
    const isIn = (path: string) => packed.files.some((file) => file === path || file.startsWith(`${path}/`));
    const broken = (await texts(/\.md$/)).flatMap(({ path, text }) =>
      links(text).flatMap(({ path: to }) => (to === "" || isIn(normalize(join(dirname(path), to))) ? [] : [`${path}: ${to}`])),
    );
    expect(broken).toEqual([]);
  });

  it("C5: names no map that is not there, no folder of the machine that built it and no package host", async () => {
    const told = /sourceMappingURL|registry\.npmjs\.org|(?<![\w.~-])\/(home|Users|root|work|private)\/\w/;
    const named = (await texts(/\.(js|d\.ts|md|json)$/)).flatMap(({ path, text }) =>
      told.test(text) || text.includes(ROOT) || text.includes(folder) ? [`${path}: ${told.exec(text)?.[0]}`] : [],
    );
    expect(named).toEqual([]);
  });

  it("C5: makegood/client loads no other package and nothing of Node, so that a page can", async () => {
    const opened = new Set<string>();
    const loads = async (path: string): Promise<string[]> => {
      if (opened.has(path)) return [];
      opened.add(path);
      const named = [...(await textOf(project, path)).matchAll(/\b(?:from|import) *\(?"([^"]+)"/g)].map(
        (match) => match[1] as string,
      );
      const inner = named.filter((name) => name.startsWith(".")).map((name) => loads(join(dirname(path), name)));
      return [...named.filter((name) => !name.startsWith(".")), ...(await Promise.all(inner)).flat()];
    };
    expect(await loads(normalize(doors().find(({ door }) => door === "./client")?.default ?? ""))).toEqual([]);
    expect(opened.size).toBeGreaterThan(1);
    expect(await loads(normalize(doors().find(({ door }) => door === "./webhook")?.default ?? ""))).toContain("node:crypto");
  });

  it("C5: publint finds nothing", async () => {
    const data = await readFile(packed.tarball);
    const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer;
    expect((await publint({ pack: { tarball }, strict: true })).messages).toEqual([]);
  });

  it("C5: are-the-types-wrong finds nothing, of a package that is ESM only", TRYING, async () => {
    const attw = join(ROOT, "node_modules/@arethetypeswrong/cli/dist/index.js");
    const { code, stdout } = await run(process.execPath, [attw, packed.tarball, "--no-color", "--no-emoji", "-f", "ascii"], ROOT);
    expect(stdout.match(/node16 \(from ESM\): OK \(ESM\)\nbundler: OK/g)).toHaveLength(doors().length);
    expect(code).toBe(0);
  });
});

describe("TypeScript", () => {
  const old = () => join(project, "node_modules/typescript/bin/tsc");
  const ours = join(ROOT, "node_modules/typescript/bin/tsc");

  for (const [at, { title, source, options, by = "5.4", soak = false }] of PROGRAMS.entries()) {
    it.runIf(SOAK || !soak)(`C5: strict programs compile with TypeScript (${by}): ${title}`, TRYING, async () => {
      const config = join(project, `tsconfig.${at}.json`);
      await writeFile(join(project, `program-${at}.ts`), source);
      await writeFile(config, JSON.stringify({ compilerOptions: options, files: [`program-${at}.ts`] }));
      expect(
        (await run(process.execPath, [by === "5.4" ? old() : ours, "-p", config, "--pretty", "false"], project)).stdout,
      ).toBe("");
    });
  }

  for (const version of ["5.4", "ours"]) {
    it(`C6: what a caller writes is judged as in the sources: ${version}`, TRYING, async () => {
      const home = join(project, `lines-${version}`);
      await mkdir(home, { recursive: true });
      await writeFile(join(home, "package.json"), '{ "type": "module" }');
      const how = { target: "ES2022", lib: ["ES2022"], module: "node16", skipLibCheck: true, types: ["node"] };
      const said = await compileLines(version === "5.4" ? old() : ours, home, "makegood", how);
      expect(said.before).toEqual([]);
      expect(RIGHT.flatMap((line) => said.right(line).map((word) => `${line}: ${word}`))).toEqual([]);
      expect(WRONG.flatMap(([line, says]) => misjudged(said.wrong(line), says) ?? [])).toEqual([]);
    });
  }
});

/** This Node, and in the soak the oldest that we support and the newest of each major, from npm. */
const NODES = ["this one", ...(SOAK ? ["20.19.0", "22", "24"] : [])];

async function nodeOf(version: string): Promise<string> {
  if (version === "this one") return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const home = join(folder, `node-${version}`);
  await mkdir(home, { recursive: true });
  await writeFile(join(home, "package.json"), '{ "private": true }');
  await runWell(
    "npm",
    ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", `${name}@${version}`],
    home,
  );
  return join(home, "node_modules", name, "bin/node");
}

for (const version of NODES) {
  describe(`Node: ${version}`, () => {
    let node = "";
    beforeAll(async () => {
      node = await nodeOf(version);
    }, PACKING_MS);

    it("C5: every door opens, from ESM and from CommonJS, and gives both the same", TRYING, async () => {
      const names = doors().map(({ door }) => door.replace(/^\./, "makegood"));
      const script = `const names = ${JSON.stringify(names)}; for (const name of names) { const opened = `;
      const tail = "; console.log(name, Object.keys(opened).sort().join()); }";
      await writeFile(join(project, "doors.mjs"), `${script}await import(name)${tail}`);
      await writeFile(join(project, "doors.cjs"), `${script}require(name)${tail}`);
      const esm = await runWell(node, ["doors.mjs"], project);
      const cjs = await runWell(node, ["--no-warnings", "doors.cjs"], project);
      expect(esm.stdout.trim().split("\n")).toHaveLength(names.length);
      expect(esm.stdout).toMatch(/^makegood .*createMakegood/m);
      expect(esm.stderr).toBe("");
      expect(cjs.stdout).toBe(esm.stdout);
    });

    it("C5: the command serves from a fresh folder and delivers what it is given", TRYING, async () => {
      const main = join(project, "node_modules/.bin/makegood");
      expect((await runWell(node, [main, "--version"], project)).stdout.trim()).toBe(manifest.version);
      const home = join(folder, `served-${version.replace(" ", "-")}`);
      await mkdir(home, { recursive: true });
      await using receiver = await startReceiver();
      const server = await startShell('cd "$2" && MAKEGOOD_PORT=0 MAKEGOOD_LOG=json exec "$0" "$1" serve', [node, main, home]);
      const { url } = (await server.fact(({ url, first_message }) => Boolean(url && first_message), TRYING.timeout)) as {
        url: string;
      };
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ sink: { kind: "http", url: receiver.url } });
      expect((await fetch(`${url}/api/v1/topics/pack/hello`, { method: "PUT", headers, body })).status).toBe(201);
      const shell = `cd "$2" && MAKEGOOD_URL="$3" exec "$0" "$1" enqueue pack/hello --key k --payload '{"n":1}' --json`;
      const enqueued = await startShell(shell, [node, main, home, url]);
      const { id } = (await enqueued.fact(({ inserted }) => inserted === true)) as { id: string };
      await expect.poll(() => receiver.of(id).map(({ body }) => body), { timeout: 30_000 }).toEqual(['{"n":1}']);
      const status = async () => ((await (await fetch(`${url}/api/v1/messages/${id}`)).json()) as { status: string }).status;
      await expect.poll(status, { timeout: 30_000 }).toBe("delivered");
      expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
      expect(server.stderr()).toBe("");
    });
  });
}

it("C5: npx finds the command in the project", TRYING, async () => {
  expect((await runWell("npx", ["--no-install", "makegood", "--version"], project)).stdout.trim()).toBe(manifest.version);
});

it("C5: the first example of the README compiles as it stands, and runs", TRYING, async () => {
  const home = join(project, "readme");
  await mkdir(home, { recursive: true });
  await cp(join(ROOT, "node_modules/@types/pg"), join(home, "node_modules/@types/pg"), { recursive: true });
  const [, example = ""] = /```ts\n([\s\S]+?)```/.exec(await textOf(project, "README.md")) ?? [];
  await writeFile(join(home, "example.ts"), example);
  const flags = [
    "--strict",
    "--target",
    "es2022",
    "--module",
    "node16",
    "--types",
    "node",
    "--skipLibCheck",
    "--pretty",
    "false",
  ];
  const old = join(project, "node_modules/typescript/bin/tsc");
  expect((await run(process.execPath, [old, ...flags, "example.ts"], home)).stdout).toBe("");

  await using receiver = await startReceiver();
  await withClient((client) => client.query("create database readme"));
  const url = Object.assign(new URL(databaseUrl()), { pathname: "/readme" }).href;
  const script = (await readFile(join(home, "example.js"), "utf8"))
    .replace("postgres://localhost/app", url)
    .replace("https://billing.internal/finalize", receiver.url);
  const table = 'await new pg.Pool({ connectionString: url }).query("create table charges (id text, state text)");\n';
  await writeFile(join(home, "example.js"), script.replace("const client =", `${table}const client =`));
  const child = await startShell('cd "$1" && exec "$0" example.js', [process.execPath, home]);
  await expect.poll(() => receiver.of("finalize-ch_1").length, { timeout: 60_000 }).toBe(1);
  await child.end("SIGKILL");
  await withClient((client) => client.query("drop database readme with (force)"));
});
