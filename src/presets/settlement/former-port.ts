/**
 * The way out of the layout that the port had before it stood on a store (one hash per entry, sorted sets beside them), for `makegood import
 * --dlq-port`: entries, terminal records and quarantine are put if absent, and each is taken away only after the store has it, in one step.
 */
import { LIMITS } from "../../message/limits.ts";
import { cutToBytes } from "../../message/one-line.ts";
import { payloadHash } from "../../message/validate.ts";
import type { DLQEntry, DLQPort, PutResult } from "../../store/redis/dlq-port/dlq-store.ts";
import { portOver } from "../../store/redis/dlq-port/port.ts";
import { FORMER_QUARANTINED, formerRoots } from "../../store/redis/dlq-port/redis-dlq-store.ts";
import type { RedisPort } from "../../store/redis/port.ts";
import { createRedisStore } from "../../store/redis/redis-store.ts";

const send = (redis: RedisPort, key: string, ...args: string[]): Promise<unknown> =>
  redis.send(key, [args[0] as string, key, ...args.slice(1)]);

export interface Moved {
  entries: number;
  terminals: number;
  quarantined: number;
  /** Were there already. */
  duplicates: number;
  /** Contradict what is there; kept as dead letters of their own. */
  conflicts: number;
  /** Could not be read: what is left of them is a dead letter now, or stays where it is if that cannot be moved either. */
  left: number;
}

export interface MoveOptions {
  readonly prefix: string;
  /** Looks and counts, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  readonly progress?: ((moved: Readonly<Moved>) => void) | undefined;
  readonly unreadable: (key: string, why: string) => void;
}

const PAGE = 100;
const REASON_BYTES = 4_000;

/** Cut off between a payload and its indexes, the rest would look like a loss. */
const FORGET = "redis.call('DEL', KEYS[1]) for i = 2, #KEYS do redis.call('ZREM', KEYS[i], ARGV[1]) end return 1";

/** A kill in between is a duplicate at the next run. */
export async function importFormerPort(redis: RedisPort, options: MoveOptions): Promise<Moved> {
  const { prefix } = options;
  const moved: Moved = { entries: 0, terminals: 0, quarantined: 0, duplicates: 0, conflicts: 0, left: 0 };
  const store = createRedisStore({ redis, prefix });
  const port = portOver(store, {});
  try {
    for (const root of formerRoots(prefix)) {
      const all = async (set: string) => (await send(redis, root + set, "ZRANGE", "0", "-1")) as string[];
      const owed = new Set([...(await all("schedule")), ...(await all("created")), ...(await unscheduled(redis, root))]);
      const records = [
        ...[...owed].map((id) => indexed(root, "entries", "entry", id)),
        ...(await all("terminals")).map((id) => indexed(root, "terminals", "terminal", id)),
        // The store's own quarantine has plain ids and is left alone.
        ...(await all("quarantine")).filter((one) => FORMER_QUARANTINED.test(one)).map((one) => inQuarantine(root, one)),
      ];
      for (const [n, record] of records.entries()) {
        await move(redis, port, record, options, moved);
        if (n % PAGE === PAGE - 1) options.progress?.(moved);
      }
    }
    return moved;
  } finally {
    await store.close();
  }
}

interface Former {
  readonly is: "entries" | "terminals" | "quarantined";
  readonly key: string;
  readonly id: string;
  /** What the sets that lead to it call it. */
  readonly member: string;
  readonly sets: readonly string[];
  /** Of what was in quarantine. */
  readonly kind?: string;
  readonly nonce?: string;
}

const INDEXES = ["schedule", "created", "claimed", "terminals"];

function indexed(root: string, is: Former["is"], name: string, id: string): Former {
  return { is, key: `${root}${name}:${id}`, id, member: id, sets: INDEXES.map((index) => root + index) };
}

/** `kind:nonce:id`. */
function inQuarantine(root: string, member: string): Former {
  const [kind = "", nonce = ""] = member.split(":", 2);
  const id = member.slice(kind.length + nonce.length + 2);
  return { is: "quarantined", key: `${root}quarantine:${nonce}:${id}`, id, member, sets: [`${root}quarantine`], kind, nonce };
}

/** Payloads that no index leads to are owed like any other. */
async function unscheduled(redis: RedisPort, root: string): Promise<string[]> {
  const [found, start] = [[] as string[], `${root}entry:`];
  const pattern = `${start.replace(/[\\*?[\]]/g, "\\$&")}*`;
  for (const node of (await redis.nodes()).filter(({ role }) => role === "master")) {
    let cursor = "0";
    do {
      const [next, keys] = (await node.send(["SCAN", cursor, "MATCH", pattern, "COUNT", "1000"])) as [unknown, unknown[]];
      found.push(...keys.map((key) => String(key).slice(start.length)));
      cursor = String(next);
    } while (cursor !== "0");
  }
  return found;
}

async function move(redis: RedisPort, port: DLQPort, one: Former, options: MoveOptions, moved: Moved): Promise<void> {
  const { is, key, id, member, sets } = one;
  const fields = await fieldsOf(redis, key);
  const gone = fields !== null && Object.keys(fields).length === 0;
  const entry = fields && entryOf(is === "quarantined" ? { ...DEFAULTS, ...fields } : fields);
  if (fields !== null && (entry || is === "quarantined")) moved[is]++;
  else {
    moved.left++;
    const rest = gone ? "its payload is gone; a dead letter names it" : "fields are missing; a dead letter has the rest";
    options.unreadable(key, fields === null ? "it is of a type that cannot be moved" : rest);
  }
  if (fields === null || options.dryRun) return;
  let result: PutResult;
  if (entry && is !== "quarantined") {
    result = await port.put(entry, { terminal: is === "terminals" ? fields.terminal_reason || entry.reason : undefined });
  } else {
    const { kind = gone ? "orphan" : "corrupt", nonce = kind } = one;
    const problem = `${kind}: ${shortestFirst(is === "quarantined" ? fields : { ...fields, reservation_id: id })}`;
    result = await putQuarantined(port, id, nonce, problem, entry ?? nameless(id));
  }
  if (result === "exists") moved.duplicates++;
  if (result === "conflict") moved.conflicts++;
  await redis.send(key, ["EVAL", FORGET, String(1 + sets.length), key, ...sets, member]);
}

/** Redis gives the fields of a large hash in any order: names and amounts must not fall to the cut of a reason because a long text came before them. */
function shortestFirst(fields: Record<string, string>): string {
  const sorted = Object.entries(fields).sort(([, a], [, b]) => a.length - b.length);
  return JSON.stringify(Object.fromEntries(sorted));
}

/** Under a name of its own, and never sent: it is not the obligation that has the reservation. */
function putQuarantined(port: DLQPort, id: string, nonce: string, problem: string, entry: DLQEntry): Promise<PutResult> {
  const name = `quarantined-${nonce}-${id}`;
  const reservation_id =
    Buffer.byteLength(name) <= LIMITS.keyBytesMax ? name : `quarantined-${cutToBytes(nonce, 100)}-${payloadHash(id)}`;
  const reason = cutToBytes(`quarantined_${problem}`, REASON_BYTES);
  return port.put({ ...entry, reason, reservation_id }, { terminal: reason, problem });
}

/** Nothing where it is gone; null: of a type that has no fields. */
async function fieldsOf(redis: RedisPort, key: string): Promise<Record<string, string> | null> {
  const type = String(await send(redis, key, "TYPE"));
  if (type === "none") return {};
  if (type === "string") return { value: String(await send(redis, key, "GET")) };
  if (type !== "hash") return null;
  const flat = (await send(redis, key, "HGETALL")) as string[];
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ""]] : [])));
}

const NEEDED = ["reservation_id", "tenant_id", "actual_cost_micro", "trace_id", "reason", "response_status"];

function entryOf(row: Record<string, string>): DLQEntry | null {
  const numbers = [row.attempt_count, row.next_ms, row.created_ms].map(Number);
  if (NEEDED.some((name) => row[name] === undefined) || !numbers.every(Number.isSafeInteger)) return null;
  const [attempts = 0, nextMs = 0, createdMs = 0] = numbers;
  const { reservation_id = "", tenant_id = "", actual_cost_micro = "", trace_id = "", reason = "" } = row;
  return {
    ...{ reservation_id, tenant_id, actual_cost_micro, trace_id, reason },
    response_status: row.response_status === "" ? null : Number(row.response_status),
    attempt_count: attempts,
    next_attempt_at: new Date(nextMs).toISOString(),
    created_at: row.created_at || new Date(createdMs).toISOString(),
  };
}

const DEFAULTS = { attempt_count: "1", next_ms: "0", created_ms: "0", response_status: "", reason: "" };

const nameless = (id: string): DLQEntry =>
  entryOf({ ...DEFAULTS, reservation_id: id, tenant_id: "", actual_cost_micro: "", trace_id: "" }) as DLQEntry;
