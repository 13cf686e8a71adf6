/**
 * The way out of the layout that the port had before it stood on a store (one hash per entry, sorted sets beside them), for `makegood import
 * --dlq-port`: entries, terminal records and quarantine are put if absent, and each is taken away only after the store has it, in one step.
 */
import { LIMITS } from "../../message/limits.ts";
import { payloadHash } from "../../message/validate.ts";
import { cutToBytes } from "../../sink/one-line.ts";
import {
  createRedisStore,
  type DLQEntry,
  type DLQPort,
  type PutResult,
  portOver,
  type RedisPort,
} from "../../store/redis/index.ts";

/** The roots that it could have: in a hash tag, or the seeds' plain names. */
const rootsOf = (prefix: string): string[] => (prefix.startsWith("{") ? [`${prefix}:`] : [`{${prefix}}:`, `${prefix}:`]);

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

async function forget({ redis, root }: From, key: string, sets: readonly string[], member: string): Promise<void> {
  await redis.send(key, ["EVAL", FORGET, String(1 + sets.length), key, ...sets.map((name) => root + name), member]);
}

/** A kill in between is a duplicate at the next run. */
export async function importFormerPort(redis: RedisPort, options: MoveOptions): Promise<Moved> {
  const { prefix } = options;
  const moved: Moved = { entries: 0, terminals: 0, quarantined: 0, duplicates: 0, conflicts: 0, left: 0 };
  const store = createRedisStore({ redis, prefix });
  const port = portOver(store, {});
  try {
    for (const root of rootsOf(prefix)) {
      const from = { redis, port, options, moved, root };
      const all = async (set: string) => (await send(redis, root + set, "ZRANGE", "0", "-1")) as string[];
      const owed = new Set([...(await all("schedule")), ...(await all("created")), ...(await unscheduled(from))]);
      await moveAll(from, [...owed], "entry", "entries");
      await moveAll(from, await all("terminals"), "terminal", "terminals");
      await moveQuarantine(from, await all("quarantine"));
    }
    return moved;
  } finally {
    await store.close();
  }
}

interface From {
  readonly redis: RedisPort;
  readonly port: DLQPort;
  readonly options: MoveOptions;
  readonly moved: Moved;
  readonly root: string;
}

/** Payloads that no index leads to are owed like any other. */
async function unscheduled({ redis, root }: From): Promise<string[]> {
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

const INDEXES = ["schedule", "created", "claimed", "terminals"];

async function moveAll(from: From, ids: readonly string[], kind: string, count: "entries" | "terminals"): Promise<void> {
  const { redis, port, options, moved, root } = from;
  for (const [n, id] of ids.entries()) {
    const key = `${root}${kind}:${id}`;
    const fields = await fieldsOf(redis, key);
    const entry = fields && entryOf(fields);
    if (entry) {
      if (!options.dryRun) {
        const terminal = kind === "terminal" ? fields.terminal_reason || entry.reason : undefined;
        tally(moved, await port.put(entry, { terminal }));
        await forget(from, key, INDEXES, id);
      }
      moved[count]++;
    } else {
      moved.left++;
      options.unreadable(key, fields === null ? "it is of a type that cannot be moved" : whatIsLeft(fields));
      if (fields !== null && !options.dryRun) {
        const what = Object.keys(fields).length === 0 ? "orphan" : "corrupt";
        await putQuarantined(from, id, what, `${what}: ${shortestFirst({ ...fields, reservation_id: id })}`, nameless(id));
        await forget(from, key, INDEXES, id);
      }
    }
    if (n % PAGE === PAGE - 1) options.progress?.(moved);
  }
}

const whatIsLeft = (fields: Record<string, string>): string =>
  Object.keys(fields).length === 0
    ? "its payload is gone; a dead letter names it"
    : "fields are missing; a dead letter has the rest";

/** Redis gives the fields of a large hash in any order: names and amounts must not fall to the cut of a reason because a long text came before them. */
function shortestFirst(fields: Record<string, string>): string {
  const sorted = Object.entries(fields).sort(([, a], [, b]) => a.length - b.length);
  return JSON.stringify(Object.fromEntries(sorted));
}

/** Under a name of its own, and never sent: it is not the obligation that has the reservation. */
async function putQuarantined({ port, moved }: From, id: string, nonce: string, problem: string, entry: DLQEntry): Promise<void> {
  const name = `quarantined-${nonce}-${id}`;
  const reservation_id =
    Buffer.byteLength(name) <= LIMITS.keyBytesMax ? name : `quarantined-${cutToBytes(nonce, 100)}-${payloadHash(id)}`;
  const reason = cutToBytes(`quarantined_${problem}`, REASON_BYTES);
  tally(moved, await port.put({ ...entry, reason, reservation_id }, { terminal: reason, problem }));
}

/** `kind:nonce:id`; the store's own quarantine has plain ids and is left alone. */
const QUARANTINED = /^[a-z]+:[0-9a-f]+:/;

async function moveQuarantine(from: From, members: readonly string[]): Promise<void> {
  const { redis, options, moved, root } = from;
  for (const member of members.filter((one) => QUARANTINED.test(one))) {
    const [kind = "", nonce = ""] = member.split(":", 2);
    const id = member.slice(kind.length + nonce.length + 2);
    const key = `${root}quarantine:${nonce}:${id}`;
    const fields = await fieldsOf(redis, key);
    if (fields === null) {
      moved.left++;
      options.unreadable(key, "it is of a type that cannot be moved");
      continue;
    }
    if (!options.dryRun) {
      const entry = entryOf({ attempt_count: "1", next_ms: "0", created_ms: "0", response_status: "", reason: "", ...fields });
      await putQuarantined(from, id, nonce, `${kind}: ${shortestFirst(fields)}`, entry ?? nameless(id));
      await forget(from, key, ["quarantine"], member);
    }
    moved.quarantined++;
  }
}

function tally(moved: Moved, result: PutResult): void {
  if (result === "exists") moved.duplicates++;
  if (result === "conflict") moved.conflicts++;
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

function nameless(id: string): DLQEntry {
  const at = new Date(0).toISOString();
  const fields = { reservation_id: id, tenant_id: "", actual_cost_micro: "", trace_id: "", reason: "" };
  return { ...fields, response_status: null, attempt_count: 1, next_attempt_at: at, created_at: at };
}
