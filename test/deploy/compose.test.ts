/**
 * The compose files: every secret, network, volume and file that a service names is declared and made by make-secrets.sh, what they set is a
 * setting of the product, and a stop has as long as it takes. (`docker compose` itself is not asked.)
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { DEFAULTS } from "../../src/message/limits.ts";
import { SETTINGS } from "../../src/server/config/settings.ts";
import { DEPLOY } from "./kustomized.ts";

type Named = Record<string, { readonly file?: string }>;
type Mount = string | { readonly source: string };
interface Service {
  readonly environment?: Record<string, string>;
  readonly secrets?: readonly Mount[];
  readonly configs?: readonly Mount[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly depends_on?: Record<string, unknown>;
  readonly healthcheck?: unknown;
  readonly stop_grace_period: string;
  readonly [more: string]: unknown;
}
interface Compose {
  readonly services: { readonly makegood: Service; readonly postgres: Service; readonly redis: Service };
  readonly secrets: Named;
  readonly configs?: Named;
  readonly volumes: Named;
  readonly networks?: Named;
}

let made: string[] = [];
let folder = "";
let first: Compose;
let second: Compose;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "makegood-compose-"));
  await promisify(execFile)(join(DEPLOY, "make-secrets.sh"), [folder]);
  made = await readdir(folder);
  const read = async (name: string) => parse(await readFile(join(DEPLOY, name), "utf8")) as Compose;
  [first, second] = [await read("compose.yaml"), await read("compose.redis.yaml")];
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const nameOf = (mount: Mount): string => (typeof mount === "string" ? mount.replace(/:.*/, "") : mount.source);

function missing({ services, ...declared }: Compose, also?: Compose): string[] {
  const there = (kind: "secrets" | "configs" | "volumes" | "networks"): string[] =>
    Object.keys({ ...also?.[kind], ...declared[kind] });
  return Object.entries(services).flatMap(([service, one]) => {
    const kinds = ["secrets", "configs", "volumes", "networks"] as const;
    const wanted = kinds.flatMap((kind) => (one[kind] ?? []).map(nameOf).filter((name) => !there(kind).includes(name)));
    const before = Object.keys(one.depends_on ?? {}).filter((name) => !(name in { ...also?.services, ...services }));
    return [...wanted, ...before].map((name) => `${service}: ${name}`);
  });
}

describe("compose", () => {
  it("declares all that it names, alone and with Redis", () => {
    expect(missing(first)).toEqual([]);
    expect(missing(second, first)).toEqual([]);
    expect(missing(second)).not.toEqual([]);
  });

  it("takes its secrets from files that make-secrets.sh makes, and its configuration from one that is shipped", () => {
    const secrets = Object.values({ ...first.secrets, ...second.secrets }).map(({ file = "" }) => file.replace("secrets/", ""));
    expect(secrets.filter((file) => !made.includes(file))).toEqual([]);
    expect(existsSync(join(DEPLOY, second.configs?.redis_durable?.file ?? "absent"))).toBe(true);
  });

  it("sets what there is to set, and names no secret", () => {
    const known = Object.values(SETTINGS).map(({ env }) => env as string);
    const given = Object.keys({ ...first.services.makegood.environment, ...second.services.makegood.environment });
    expect(given.filter((name) => !known.includes(name.replace(/_FILE$/, "")))).toEqual(["NODE_EXTRA_CA_CERTS"]);
    expect(given.filter((name) => /^(DATABASE_URL|REDIS_URL|MAKEGOOD_TOKENS)$/.test(name))).toEqual([]);
  });

  it("confines Makegood, gives it the time that a stop takes, and lets nobody but this machine reach it", () => {
    const { makegood } = first.services;
    expect(makegood).toMatchObject({ read_only: true, cap_drop: ["ALL"], user: "1000:1000" });
    expect(Number(makegood.stop_grace_period.replace("s", ""))).toBeGreaterThanOrEqual(DEFAULTS.drainMs / 1_000 + 15);
    expect(makegood.ports).toEqual(["127.0.0.1:4600:4600"]);
    expect([first.services.postgres.ports, second.services.redis.ports]).toEqual([undefined, undefined]);
  });
});
