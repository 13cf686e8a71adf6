/**
 * The seeds' port on Redis: entries survive this process and are shared by many. One script per transition, under one hash tag;
 * nothing connects or is asked before the first call (DA-17), and `durable` is what was verified and last answered, never a constant.
 */
import { payloadHash } from "../../../message/validate.ts";
import { type Random, systemRandom } from "../../../platform/random.ts";
import { runLua, type Script } from "../lua.ts";
import type { RedisPort } from "../port.ts";
import { asStoreError } from "../redis-errors.ts";
import { CLAIM, EXTEND, INCREMENT, RELEASE, TERMINAL } from "./claim-scripts.ts";
import type {
  AlarmKind,
  DLQOperations,
  DLQStore,
  DLQStoreOptions,
  NewDLQEntry,
  PersistenceCheck,
  PutOptions,
} from "./dlq-store.ts";
import * as rules from "./entry.ts";
import { createKeys, DLQ_PREFIX } from "./keys.ts";
import { checkPersistence } from "./persistence.ts";
import { createOperations } from "./redis-operations.ts";
import { list, toEntry } from "./rows.ts";
import { DELETE, GET, OLDEST, PUT, READY } from "./scripts.ts";

export interface RedisDLQStoreOptions extends DLQStoreOptions {
  /** Default `{finn:hounfour:dlq}`. Without the braces: the seeds' plain names, for a single node only. */
  readonly prefix?: string | undefined;
  /** Who vouches that this server persists, where its settings cannot be read; an answer of `failed` is not overruled. */
  readonly attestedBy?: string | undefined;
  readonly random?: Random | undefined;
  /** Set only by tests and simulation; absent, the server's clock is the authority. */
  readonly now?: (() => number) | undefined;
}

const WHAT: Readonly<Record<AlarmKind, string>> = {
  orphan: "it was scheduled and its payload is gone; a note is in quarantine: find out what was owed",
  unscheduled: "its payload was there and no index led to it; it is scheduled again",
  corrupt: "its payload cannot be read; it is in quarantine as it was",
  conflict: "a second obligation with another cost or tenant; the first stands, the second is in quarantine",
};

export function createRedisDLQStore(redis: RedisPort, options: RedisDLQStoreOptions = {}): DLQStore & DLQOperations {
  const { random = systemRandom } = options;
  const { maxRetries, batchLimit } = rules.storeLimits(options);
  const ring = rules.alarmBell(options.onAlarm);
  const keys = createKeys(options.prefix ?? DLQ_PREFIX);
  const now = (): string => (options.now ? String(Math.floor(options.now())) : "");
  const hex = (bytes: number): string => Buffer.from(random.bytes(bytes)).toString("hex");
  const alarm = (kind: AlarmKind, id: string): void => ring({ kind, reservation_id: id, detail: WHAT[kind] });
  let persistence: PersistenceCheck | null = null;
  let answers = false;

  /** Whether the server answers is part of whether it is durable: every call finds out anew. */
  async function heard<T>(call: Promise<T>): Promise<T> {
    try {
      const reply = await call;
      answers = true;
      return reply;
    } catch (error) {
      answers = false;
      throw error;
    }
  }
  const run = (script: Script, on: readonly string[], args: readonly string[]): Promise<unknown> =>
    heard(runLua(redis, script, on, [now(), ...args]));
  /** Plain commands here only read. */
  const send = (key: string, args: readonly string[]): Promise<unknown> =>
    heard(redis.send(key, args)).catch((error: unknown) => Promise.reject(asStoreError(error, `dlq ${args[0]}`, false)));
  /** KEYS of a claim's change, and its answer as yes or no. */
  const yes = async (script: Script, on: readonly string[], args: readonly string[]): Promise<boolean> =>
    Number(await run(script, on, args)) === 1;
  const indexes = [keys.schedule, keys.created, keys.claimed, keys.quarantine];

  async function put(entry: NewDLQEntry, how: PutOptions = {}) {
    rules.checkEntry(entry, how);
    const { reservation_id: id, tenant_id, actual_cost_micro, next_attempt_at, created_at } = entry;
    const refused = payloadHash(JSON.stringify([tenant_id, actual_cost_micro]));
    const nonce = hex(8);
    const given = how.delayMs === undefined && next_attempt_at !== undefined;
    const on = [keys.entry(id), ...indexes, keys.terminal(id), keys.terminals];
    const [result, found] = list(
      await run(
        PUT,
        [...on, keys.quarantined(refused, id), keys.quarantined(nonce, id)],
        [
          ...[id, tenant_id, actual_cost_micro, entry.trace_id, entry.reason],
          ...[entry.response_status === null ? "" : String(entry.response_status), String(entry.attempt_count)],
          ...[given ? String(rules.isoMs("next_attempt_at", next_attempt_at)) : "", String(Math.ceil(how.delayMs ?? 0))],
          ...[created_at === undefined ? "" : String(rules.isoMs("created_at", created_at)), created_at ?? ""],
          ...[refused, nonce, how.terminal === undefined ? "0" : "1", how.terminal ?? ""],
        ],
      ),
    );
    if (found) alarm(found as AlarmKind, id);
    if (result === "conflict") alarm("conflict", id);
    return result as "created" | "exists" | "conflict";
  }

  /** Two round trips however many are due (DF-22): who comes first, and then all of them in one script that judges who is due. */
  async function getReady(before?: Date) {
    const limit = String(before?.getTime() ?? Number.MAX_SAFE_INTEGER);
    const args = ["ZRANGEBYSCORE", keys.schedule, "-inf", limit, "LIMIT", "0", String(batchLimit)];
    const ids = list(await send(keys.schedule, args)).map(String);
    if (ids.length === 0) return [];
    const nonce = hex(8);
    const on = [...indexes, ...ids.flatMap((id) => [keys.entry(id), keys.quarantined(nonce, id)])];
    const found = list(await run(READY, on, [nonce, limit, ...ids])).map(list);
    for (const [id, what] of found) if (what !== "ok") alarm(what as AlarmKind, String(id));
    return found.filter(([, what]) => what === "ok").map(([, , row]) => toEntry(row));
  }

  async function claimForReplay(id: string, leaseMs: number = rules.DLQ_LIMITS.leaseMs) {
    rules.checkId(id);
    const [token, nonce] = [hex(16), hex(8)];
    const on = [keys.entry(id), ...indexes, keys.quarantined(nonce, id)];
    const args = [id, String(rules.checkLease(leaseMs)), token, nonce];
    const [what, abandoned, row] = list(await run(CLAIM, on, args));
    if (what === "ok") return { token, entry: toEntry(row), abandoned: Number(abandoned) };
    if (what !== "none") alarm(what as AlarmKind, id);
    return null;
  }

  async function validatePersistence(): Promise<PersistenceCheck> {
    const check = await checkPersistence(redis);
    if (Object.keys(check.checked).length > 0) answers = true;
    const { attestedBy } = options;
    const vouched = check.state === "unknown" && attestedBy !== undefined;
    persistence = vouched ? { ...check, state: "verified", reason: `attested by ${attestedBy}: ${check.reason}` } : check;
    return persistence;
  }

  return {
    kind: "redis",
    get durable() {
      return answers && persistence?.state === "verified";
    },
    maxRetries,
    batchLimit,
    put,
    getReady,
    claimForReplay,
    validatePersistence,
    ...createOperations({ keys, indexes, batchLimit, run, send, nodes: () => heard(redis.nodes()), hex, alarm }),

    async get(id) {
      rules.checkId(id);
      const row = list(await run(GET, [keys.entry(id)], []));
      if (row.length === 1) {
        if (row[0] === "corrupt") alarm("corrupt", id);
        return null;
      }
      return toEntry(row);
    },
    async delete(id, token = "") {
      rules.checkId(id);
      return yes(DELETE, [keys.entry(id), keys.schedule, keys.created, keys.claimed], [id, token]);
    },
    count: async () => Number(await send(keys.schedule, ["ZCARD", keys.schedule])),
    async oldestEntryAgeMs() {
      const [at, born] = list(await run(OLDEST, [keys.created], []));
      return born === "" ? null : Math.max(0, Number(at) - Number(born));
    },
    async releaseClaim(id, token) {
      rules.checkId(id);
      return token !== "" && yes(RELEASE, [keys.entry(id), keys.schedule, keys.claimed], [id, token]);
    },
    async extendClaim(id, token, leaseMs) {
      rules.checkId(id);
      const on = [keys.entry(id), keys.schedule, keys.claimed];
      return token !== "" && yes(EXTEND, on, [id, token, String(rules.checkLease(leaseMs))]);
    },
    async incrementAttempt(id, token, next) {
      rules.checkId(id);
      const { atMs, delayMs } = rules.nextAttempt(next);
      if (token === "") return null;
      const args = [id, token, atMs === null ? "" : String(Math.max(0, atMs)), String(delayMs)];
      const count = Number(await run(INCREMENT, [keys.entry(id), keys.schedule], args));
      return count < 0 ? null : count;
    },
    async terminalDrop(id, token, reason) {
      rules.checkId(id);
      rules.checkReason(reason);
      const on = [keys.entry(id), keys.schedule, keys.created, keys.claimed, keys.terminal(id), keys.terminals];
      return token !== "" && yes(TERMINAL, on, [id, token ?? "", reason]);
    },
  };
}
