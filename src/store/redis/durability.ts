/**
 * Durability that is known, not assumed (DF-9, DF-10): what every node says about persistence, its file, memory and replication, read
 * with plain commands. CONFIG GET first, INFO where that is refused; each fact is verified, failed or unknown, and an unknown
 * one counts only if the operator vouches for it.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { StoreTraits } from "../store.ts";
import { appendOnlyFile } from "./append-only-file.ts";
import type { Finding, Verdict } from "./finding.ts";
import type { RedisPort } from "./port.ts";
import { asStoreError, replyCode } from "./redis-errors.ts";
import type { RedisNode } from "./wire.ts";

export interface NodeDurability {
  readonly node: string;
  readonly role: "master" | "replica";
  readonly findings: readonly Finding[];
}

export interface RedisDurability {
  readonly nodes: readonly NodeDurability[];
  /** The worst over all nodes. */
  readonly appendonly: Verdict;
  readonly appendfsync: "always" | "everysec" | "no" | null;
  /** Some node cannot write its append-only file now, or has not read it to its end. */
  readonly failing: boolean;
  readonly policy: Verdict;
  /** The eviction policies found; with `noeviction` alone nothing is ever evicted. */
  readonly policies: readonly string[];
}

/** What the operator vouches for, by name and value, where the server does not say. */
export type Attestation = Readonly<Partial<Record<"appendonly" | "appendfsync" | "maxmemory-policy", string>>>;

const SETTINGS = ["appendonly", "appendfsync", "maxmemory-policy", "maxmemory"] as const;
type Setting = (typeof SETTINGS)[number];

/** With `yes` there is no sync while a rewrite runs, also with `appendfsync always`. */
const PAUSE = "no-appendfsync-on-rewrite";
const PAUSED = " except during a rewrite";

export async function readDurability(port: RedisPort, attest: Attestation = {}): Promise<RedisDurability> {
  const nodes = await Promise.all((await port.nodes()).map((node) => examine(node, attest)));
  const findings = (name: Finding["name"]) => nodes.flatMap((node) => node.findings.filter((one) => one.name === name));
  const syncs = findings("appendfsync").map((one) => (one.value?.endsWith(PAUSED) ? "no" : known(one)));
  const order = ["no", "everysec", "always"] as const;
  const weakest = order.find((one) => syncs.includes(one)) ?? null;
  return {
    nodes,
    appendonly: worst(findings("appendonly")),
    appendfsync: syncs.includes(null) ? null : weakest,
    failing: findings("append-only-file").some(({ verdict, required }) => verdict === "failed" && required),
    policy: worst(findings("maxmemory-policy")),
    policies: [...new Set(findings("maxmemory-policy").flatMap(({ value }) => (value === null ? [] : [value])))],
  };
}

const known = ({ value, verdict }: Finding): string | null => (verdict === "unknown" ? null : value);

function worst(findings: readonly Finding[]): Verdict {
  const verdicts = findings.map(({ verdict }) => verdict);
  if (verdicts.includes("failed")) return "failed";
  return verdicts.includes("unknown") || verdicts.length === 0 ? "unknown" : "verified";
}

/** `everysec` survives the death of the process, `always` also a power cut; what is not known to persist survives nothing. */
export function survivesOf({ appendonly, appendfsync, policy, failing }: RedisDurability): StoreTraits["survives"] {
  if (appendonly !== "verified" || policy === "failed" || failing) return "nothing";
  return appendfsync === "always" ? "power-loss" : "process-crash";
}

/** Throws unless nothing can be evicted, or the operator named the policy that is allowed all the same. */
export function requireNoEviction({ policies }: RedisDurability, allowed: string | null): void {
  const wrong = policies.find((policy) => policy !== "noeviction" && policy !== allowed);
  if (wrong === undefined) return;
  throw new MakegoodError(
    "invalid_config",
    `Redis has maxmemory-policy ${wrong}: when memory runs out it would throw accepted messages away. Set maxmemory-policy noeviction, or MAKEGOOD_ALLOW_EVICTION=${wrong} to start all the same.`,
    { policy: wrong },
  );
}

async function examine(node: RedisNode, attest: Attestation): Promise<NodeDurability> {
  const [config, info, pause] = await Promise.all([readConfig(node), readInfo(node), readSetting(node, PAUSE)]);
  const fromInfo: Readonly<Record<Setting, string | null>> = {
    appendonly: { "1": "yes", "0": "no" }[info.get("aof_enabled") ?? ""] ?? null,
    appendfsync: null,
    "maxmemory-policy": info.get("maxmemory_policy") ?? null,
    maxmemory: info.get("maxmemory") ?? null,
  };
  const findings = SETTINGS.map((name) => {
    const said = config.get(name) ?? fromInfo[name];
    const vouched = said === null && name !== "maxmemory" ? (attest[name] ?? null) : null;
    const found = check(name, said ?? vouched, vouched !== null);
    return name === "appendfsync" && pause === "yes" ? paused(found) : found;
  });
  return { node: node.name, role: node.role, findings: [...findings, appendOnlyFile(info), replication(info)] };
}

function paused(sync: Finding): Finding {
  if (sync.verdict !== "verified") return sync;
  const detail = `${PAUSE} yes: a power cut during a rewrite takes all that came since it began; set it to no`;
  return { ...sync, value: `${sync.value}${PAUSED}`, detail };
}

function check(name: Setting, value: string | null, attested: boolean): Finding {
  const make = (good: boolean, required: boolean, bad: string): Finding => {
    const verdict = value === null ? "unknown" : good ? "verified" : "failed";
    const unknown = "neither CONFIG GET nor INFO says it: attest it, or let this user read it";
    return {
      name,
      verdict,
      value,
      attested,
      required,
      detail: verdict === "failed" ? bad : verdict === "unknown" ? unknown : "",
    };
  };
  switch (name) {
    case "appendonly":
      return make(value === "yes", true, "nothing survives a restart: set appendonly yes");
    case "appendfsync":
      return make(
        value === "always" || value === "everysec",
        false,
        "the disk is written when the system likes: set everysec or always",
      );
    case "maxmemory-policy":
      return make(value === "noeviction", true, "accepted messages are thrown away when memory runs out: set noeviction");
    case "maxmemory":
      return make(value !== "0", false, "no limit: the system's memory killer is the limit; set maxmemory");
  }
}

/** Empty where the server refuses it (an ACL, rename-command, a managed service). */
async function readConfig(node: RedisNode): Promise<Map<Setting, string>> {
  const values = await Promise.all(SETTINGS.map((name) => readSetting(node, name)));
  const said = SETTINGS.map((name, i) => [name, values[i]] as const);
  return new Map(said.filter((one): one is readonly [Setting, string] => typeof one[1] === "string"));
}

async function readSetting(node: RedisNode, name: string): Promise<string | null> {
  const reply = await answered(node, ["CONFIG", "GET", name]);
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === "string" ? value : null;
}

async function readInfo(node: RedisNode): Promise<Map<string, string>> {
  const replies = await Promise.all(["persistence", "memory", "replication"].map((section) => answered(node, ["INFO", section])));
  const lines = replies.flatMap((reply) => (typeof reply === "string" ? reply.split(/\r?\n/) : []));
  return new Map(lines.filter((line) => line.includes(":")).map((line) => line.split(":", 2) as [string, string]));
}

/** Advice only: one server is a choice, but an operator with replicas wants to know whether they follow. */
function replication(info: ReadonlyMap<string, string>): Finding {
  const base = { name: "replication", attested: false, required: false } as const;
  const role = info.get("role");
  if (role === undefined) return { ...base, verdict: "unknown", value: null, detail: "INFO replication is refused" };
  if (role !== "master") {
    const up = info.get("master_link_status") === "up";
    return { ...base, verdict: up ? "verified" : "failed", value: "replica", detail: up ? "" : "it does not reach its master" };
  }
  const count = Number(info.get("connected_slaves") ?? 0);
  const detail =
    count === 0 ? "no replica: what this machine loses is lost" : "asynchronous: a failover may lose the last moment";
  return { ...base, verdict: count > 0 ? "verified" : "failed", value: `${count} replicas`, detail };
}

/** What the server refuses is null; what does not reach it is an error. */
async function answered(node: RedisNode, args: readonly string[]): Promise<unknown> {
  try {
    return await node.send(args);
  } catch (error) {
    if (error instanceof MakegoodError) throw error;
    const code = replyCode(error);
    // It refuses every command: its settings are not unknown, it cannot be used.
    if (code === "NOAUTH") throw asStoreError(error, "check of durability", false);
    if (code !== null) return null;
    throw new MakegoodError("store_unavailable", `Redis ${node.name} cannot be examined: ${errorText(error)}`, {}, error);
  }
}
