/**
 * The way out of the layout that the port had before it stood on a store (one hash per entry, sorted sets beside them), for `makegood import
 * --dlq-port`: entries, terminal records and quarantine are put if absent, and each is taken away only after the store has it.
 */
import { createRedisStore, type DLQEntry, type DLQPort, type PutResult, portOver, type RedisPort } from "../store/redis/index.ts";

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
  /** Cannot be read; they stay where they are. */
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

/** A kill in between is a duplicate at the next run. */
export async function importFormerPort(redis: RedisPort, options: MoveOptions): Promise<Moved> {
  const { prefix } = options;
  const moved: Moved = { entries: 0, terminals: 0, quarantined: 0, duplicates: 0, conflicts: 0, left: 0 };
  const store = createRedisStore({ redis, prefix });
  const port = portOver(store, {});
  try {
    for (const root of rootsOf(prefix)) {
      const from = { redis, port, options, moved, root, seen: new Set<string>() };
      await moveAll(from, "schedule", "entry", "entries");
      await moveAll(from, "created", "entry", "entries");
      await moveAll(from, "terminals", "terminal", "terminals");
      await moveQuarantine(from);
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
  readonly seen: Set<string>;
}

async function moveAll(
  { redis, port, options, moved, root, seen }: From,
  set: string,
  kind: string,
  count: "entries" | "terminals",
) {
  const ids = (await send(redis, root + set, "ZRANGE", "0", "-1")) as string[];
  for (const [n, id] of ids.entries()) {
    const key = `${root}${kind}:${id}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const fields = await fieldsOf(redis, key);
    const entry = fields && entryOf(fields);
    if (!entry) {
      moved.left++;
      options.unreadable(key, fields === null ? "its payload is gone or is no hash" : "fields are missing");
      continue;
    }
    if (!options.dryRun) {
      const terminal = kind === "terminal" ? fields.terminal_reason || entry.reason : undefined;
      tally(moved, await port.put(entry, { terminal }));
      await send(redis, key, "DEL");
      for (const name of ["schedule", "created", "claimed", "terminals"]) await send(redis, root + name, "ZREM", id);
    }
    moved[count]++;
    if (n % PAGE === PAGE - 1) options.progress?.(moved);
  }
}

/** Members `kind:nonce:id`; the store's own quarantine has plain ids and is left alone. */
async function moveQuarantine({ redis, port, options, moved, root }: From): Promise<void> {
  const set = `${root}quarantine`;
  const members = ((await send(redis, set, "ZRANGE", "0", "-1")) as string[]).filter((one) => /^[a-z]+:[0-9a-f]+:/.test(one));
  for (const member of members) {
    const [kind = "", nonce = ""] = member.split(":", 2);
    const id = member.slice(kind.length + nonce.length + 2);
    const key = `${root}quarantine:${nonce}:${id}`;
    const fields = (await fieldsOf(redis, key)) ?? {};
    const reason = `quarantined_${kind}: ${JSON.stringify(fields)}`.slice(0, 4_000);
    if (!options.dryRun) {
      const entry = entryOf({ attempt_count: "1", next_ms: "0", created_ms: "0", response_status: "", ...fields, reason });
      // Under a name of its own: it is not the obligation that has the reservation.
      const named = entry ?? nameless(id, reason);
      tally(
        moved,
        await port.put({ ...named, reservation_id: `quarantined-${nonce}-${id}`.slice(0, 255) }, { terminal: reason }),
      );
      await send(redis, key, "DEL");
      await send(redis, set, "ZREM", member);
    }
    moved.quarantined++;
  }
}

function tally(moved: Moved, result: PutResult): void {
  if (result === "exists") moved.duplicates++;
  if (result === "conflict") moved.conflicts++;
}

async function fieldsOf(redis: RedisPort, key: string): Promise<Record<string, string> | null> {
  if (String(await send(redis, key, "TYPE")) !== "hash") return null;
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

function nameless(id: string, reason: string): DLQEntry {
  const at = new Date(0).toISOString();
  const fields = { reservation_id: id, tenant_id: "", actual_cost_micro: "", trace_id: "", reason };
  return { ...fields, response_status: null, attempt_count: 1, next_attempt_at: at, created_at: at };
}
