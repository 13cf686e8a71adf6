/**
 * The rooms of the house and what each may import: only what stands to its left. A file that belongs to no room here is a
 * violation, so a new folder begins with a line in this table.
 */
import { KINDS } from "../../src/sink/kinds.ts";

/** Kinds of sinks: each is a sibling of the others, in a file of its name. Any other file of src/sink is a part that several kinds may use. */
export const SINK_KINDS: readonly string[] = Object.keys(KINDS);
const SINK_LIST: readonly string[] = ["kinds", "check-sink", "sinks"];
export const STORE_ENGINES: readonly string[] = ["memory", "postgres", "redis", "journal", "ladder"];

/** The files that a subpath of the package's `exports` opens; only these re-export, and they do nothing else. */
export const DOORS: readonly string[] = [
  "src/index.ts",
  "src/store/postgres/index.ts",
  "src/store/redis/index.ts",
  "src/store/journal/index.ts",
  "src/server/index.ts",
  "src/adapters/index.ts",
  "src/presets/index.ts",
  "src/webhook/index.ts",
  "src/inbox/index.ts",
  "src/testing/index.ts",
  "src/contract/index.ts",
];

const GROUND = ["message", "platform"];
const SEAMS = [...GROUND, "observe", "store", "sink"];
const MIDDLE = [
  ...SEAMS,
  "store-part",
  "ladder-format",
  "sink-part",
  "sink-list",
  "topic",
  "worker",
  "client",
  "recovery",
  "archive",
  "maintenance",
  "access",
  "evidence",
  "transfer",
  "verify",
];
const ENGINES = ["store:*", "sink:*", "sink-list"];

/** Room → rooms it may import besides itself. `store:*` is any store engine, `store-door` only the door of one. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  message: [],
  platform: [],
  // For receivers. Signatures have their home here: the webhook sink signs with what verifies.
  webhook: GROUND,
  observe: GROUND,
  // How a message is written on its way down the ladder: seams name it, journal and ladder keep to it, the command line reads it back.
  "ladder-format": [...GROUND, "observe"],
  store: [...GROUND, "observe", "ladder-format"],
  // What several engines would otherwise each write for themselves.
  "store-part": [...GROUND, "observe", "store"],
  sink: [...GROUND, "observe"],
  "sink-part": [...GROUND, "observe", "sink"],
  "store:*": [...GROUND, "observe", "store", "store-part"],
  "store:journal": [...GROUND, "observe", "store", "ladder-format"],
  "sink:*": [...GROUND, "observe", "sink", "sink-part", "webhook"],
  "sink-list": [...GROUND, "observe", "sink", "sink-part", "sink:*"],
  topic: SEAMS,
  worker: [...SEAMS, "topic"],
  // deliver() makes the worker's attempt and tells the worker's breaker; nothing of the worker knows the client.
  client: [...SEAMS, "topic", "worker"],
  // Who may do what: tokens, roles, and what an approval is bound to; a room on PostgreSQL, as recovery is.
  access: [...SEAMS, "store-part"],
  // One room on PostgreSQL: it writes SQL of its own tables in what the store gives it (store/home.ts), and knows nothing of the engine.
  recovery: [...SEAMS, "store-part", "access"],
  // What left its tables, and where it went; a room on PostgreSQL as well.
  archive: [...SEAMS, "store-part", "ladder-format"],
  maintenance: [...SEAMS, "store-part", "archive"],
  // As recovery: SQL of its own tables, on what the store gives it.
  evidence: [...SEAMS, "store-part"],
  // Between stores and files, by the seams alone.
  transfer: [...SEAMS, "store-part", "ladder-format"],
  // What gauges of the whole system are read from: statements over tables of other rooms, through what the store gives them.
  levels: SEAMS,
  // Conservation: the store's own word of itself, its witness, and the places beside it that wiring names.
  verify: [...SEAMS, "store-part", "ladder-format"],
  // Wiring: the only room that knows every engine.
  create: [...MIDDLE, "levels", ...ENGINES],
  // Journal and memory, the lower rungs of the ladder, hold their messages in the memory engine.
  "store:ladder": [...GROUND, "observe", "store", "ladder-format", "store:memory"],
  // The seeds' port is a façade over any store. It stands where its users know it, at the door of the Redis engine.
  "dlq-port": [...SEAMS, "store-part", "store:redis", "store:memory"],
  "store:redis": [...GROUND, "observe", "store", "store-part", "dlq-port"],
  presets: [...MIDDLE, "store:redis", "store:memory", "dlq-port", "create"],
  // What every address takes and answers. It knows words and limits of the rooms, and does nothing; the client in it loads none of them.
  contract: [...GROUND, "store", "recovery", "access"],
  // The memory store has no door of its own: MAKEGOOD_STORE=memory.
  server: [...MIDDLE, "contract", "create", "presets", "store-door", "store:memory"],
  // What is asked of a deployment before and while it is trusted; the command line only shows it.
  doctor: [...MIDDLE, "contract", "server", "store-door"],
  cli: [...MIDDLE, "contract", "create", "presets", "server", "doctor", "store-door"],
  testing: [...MIDDLE, ...ENGINES, "create"],
  // For receivers: the caller's transaction as the stores take it, and no store.
  inbox: [...GROUND, "store", "store-part"],
  // Its shims have a rule of their own: types of store.ts and nothing else.
  adapters: ["store"],
  front: [...MIDDLE, ...ENGINES, "create"],
};

/**
 * Room → rooms of which it may know the types, and load nothing. What code may declare as a sink follows from the list of kinds; the
 * checks and the sinks themselves stay with createMakegood, so that declaring a topic loads no sink.
 */
export const MAY_IMPORT_TYPES: Readonly<Record<string, readonly string[]>> = {
  topic: ["sink-list"],
};

/** The room a file belongs to; null when it belongs to none. */
export function roomOf(path: string): string | null {
  if (path === "src/index.ts") return "front";
  if (path === "src/create.ts") return "create";
  const [, room, next = "", deeper] = path.split("/");
  if (room === undefined || next === "") return null;
  const base = next.replace(/\.ts$/, "");
  if (room === "store") {
    if (path.startsWith("src/store/redis/dlq-port/")) return "dlq-port";
    if (path.startsWith("src/store/ladder/format/")) return "ladder-format";
    if (deeper === undefined) return "store";
    if (next === "shared") return "store-part";
    return STORE_ENGINES.includes(next) ? `store:${next}` : null;
  }
  if (room === "sink") {
    // The files of the room that see every kind: the list, what it refuses, and a sink's configuration in, the sink out.
    if (SINK_LIST.includes(base)) return "sink-list";
    if (SINK_KINDS.includes(base)) return `sink:${base}`;
    return base === "sink" ? "sink" : "sink-part";
  }
  return room in MAY_IMPORT ? room : null;
}

export function mayImport(from: string, to: string, target: string, kind: "value" | "type"): boolean {
  if (from === to) return true;
  if (kind === "type" && MAY_IMPORT_TYPES[from]?.includes(to)) return true;
  const family = (room: string): string => room.replace(/:.*/, ":*");
  const allowed = MAY_IMPORT[from] ?? MAY_IMPORT[family(from)] ?? [];
  if (allowed.includes(to) || (to.includes(":") && allowed.includes(family(to)))) return true;
  return allowed.includes("store-door") && to.startsWith("store:") && DOORS.includes(target);
}
