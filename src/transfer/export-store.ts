/**
 * Everything of a store that is not settled, in one file: topics, each message as it stands, and records where it has them. The store must be at rest, so that no message
 * is delivered here after it was written there; what is at rest and how it is told is said in `whyAtWork`.
 */
import { resolve } from "node:path";
import { MakegoodError } from "../message/errors.ts";
import { CARRIERS, holdsCredential, type SinkConfig, type TopicRecord } from "../message/topic.ts";
import type { Clock } from "../platform/clock.ts";
import { type MovableMessage, movableOf } from "../store/movable.ts";
import { RECORD_KINDS, type RecordKind } from "../store/movable-records.ts";
import type { Store } from "../store/store.ts";
import { RecordWriter } from "./export-records.ts";
import { type Closing, FORMAT, messageText, type TopicLine } from "./format.ts";
import { checkFile } from "./read-file.ts";
import { Sums } from "./sums.ts";
import { FileWriter } from "./write-file.ts";

export interface ExportOptions {
  readonly store: Store;
  readonly path: string;
  readonly clock: Clock;
  readonly all: boolean;
  readonly live: boolean;
  readonly secrets: boolean;
  /** Kinds of records that are left out. */
  readonly without?: readonly RecordKind[] | undefined;
  /** How many messages cannot be read. */
  readonly unreadable: number;
  readonly progress?: ((done: number) => void) | undefined;
}

export interface Exported extends Closing {
  /** Topics whose secrets are not in the file, and which. */
  readonly missing: Readonly<Record<string, readonly string[]>>;
  /** Messages that were in flight and are written as tried once more, to be tried again. */
  readonly inFlight: number;
}

const PAGE = { limit: 200, bytesMax: 4_194_304 };

export async function exportStore(options: ExportOptions): Promise<Exported> {
  const { store, clock, all, live, secrets, unreadable, progress } = options;
  const movable = movableOf(store);
  if (!movable) throw new MakegoodError("action_refused", `a ${store.traits.name} store cannot be exported`);
  if (!live) await refuseAtWork(store);
  const writer = await FileWriter.create(resolve(options.path));
  const madeAt = new Date(clock.wallMs());
  await writer.add({ makegood_export: FORMAT, made_at: madeAt.toISOString(), store: store.traits.name, all, live, secrets });
  const topics = (await store.topics.list()).map((topic) => topicLine(topic, secrets));
  for (const topic of topics) await writer.add({ topic });
  const kinds = RECORD_KINDS.filter((kind) => !options.without?.includes(kind));
  const records = await RecordWriter.of(store, kinds, all, writer);
  await records?.write("first");
  const sums = new Sums();
  let inFlight = 0;
  let after: string | undefined;
  do {
    const page = await movable.read({ ...PAGE, all, after });
    for (const one of page.messages) {
      if (one.status === "processing") inFlight++;
      const message = one.status === "processing" ? interrupted(one, madeAt) : one;
      sums.add(message);
      await writer.add(`{"message":${messageText(message)}}`);
      progress?.(sums.count);
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
  await records?.write("last");
  const written = { topics: topics.length, messages: sums.count, hash: sums.hash, sums: sums.list(), unreadable };
  await writer.end({ ...written, records: records?.sums() ?? [] });
  // As it is on the disk now, and as the store is now.
  const { closing } = await checkFile(writer.part);
  if (!live) await refuseAtWork(store, sums, all);
  if (!live) await records?.refuseChanged();
  await writer.giveName();
  const missing = Object.fromEntries(
    topics.flatMap((one) => (one.missing.length > 0 ? [[one.definition.name, one.missing]] : [])),
  );
  return { ...closing, missing, inFlight };
}

/** Why messages could move meanwhile; null: none can. A topic that is paused delivers nothing, and a lease that is over belongs to nobody. */
export async function whyAtWork(store: Store): Promise<string | null> {
  const [topics, workers] = await Promise.all([store.topics.list(), store.topics.workers()]);
  if (workers.length === 0) return null;
  if (topics.some(({ paused }) => !paused)) {
    const names = workers.slice(0, 3).map(({ owner }) => owner);
    const more = workers.length > names.length ? ", …" : "";
    return `${workers.length} worker${workers.length === 1 ? " is" : "s are"} at work (${names.join(", ")}${more})`;
  }
  const counts = await store.counts();
  const flying = counts.reduce((sum, { status, count }) => sum + (status === "processing" ? count : 0), 0);
  return flying > 0 ? `${flying} messages are in flight` : null;
}

async function refuseAtWork(store: Store, written?: Sums, all = false): Promise<void> {
  const why = (await whyAtWork(store)) ?? (written ? await whyOther(store, written, all) : null);
  if (why === null) return;
  const remedy = "Stop every process that uses this store, or pause all topics and wait until nothing is in flight";
  throw new MakegoodError(
    "action_refused",
    `${why}: what is delivered here after it was copied would be delivered twice. ${remedy}; --live copies all the same, for looking and not for moving`,
  );
}

/** The file against what the store counts now. */
async function whyOther(store: Store, written: Sums, all: boolean): Promise<string | null> {
  const count = (list: readonly { readonly topic: string; readonly status: string; readonly count: number }[]) => {
    const byName = new Map<string, number>();
    for (const { topic, status, count: more } of list) {
      const name = `${topic} ${status.replace("processing", "pending").replace("dead open", "dead")}`;
      byName.set(name, (byName.get(name) ?? 0) + more);
    }
    return [...byName].sort(([a], [b]) => (a < b ? -1 : 1));
  };
  const counted = (await store.counts({ delivered: all })).filter(
    ({ resolution }) => all || resolution === null || resolution === "open",
  );
  const there = count(
    counted.map((one) => ({ ...one, status: one.resolution === null ? one.status : `${one.status} ${one.resolution}` })),
  );
  const [ours, theirs] = [JSON.stringify(count(written.list())), JSON.stringify(there)];
  return ours === theirs ? null : `the store changed while it was read (written ${ours}, there now ${theirs})`;
}

/** Nobody knows how its attempt ended: it counts, and the message is tried again at once. */
function interrupted(one: MovableMessage, at: Date): MovableMessage {
  const lost = {
    outcome: "lost",
    counted: true,
    at,
    durationMs: null,
    code: "moved",
    error: "in flight when it was exported",
  } as const;
  const history = [...one.history, { attempt: one.attempts, ...lost, nextAttemptAt: one.createdAt }];
  return { ...one, status: "pending", nextAttemptAt: one.createdAt, retried: one.suspicion === 0, history };
}

function topicLine(topic: TopicRecord, secrets: boolean): TopicLine {
  const { source, paused, disabledReason, revision, breaker, ...definition } = topic;
  if (secrets) return { definition, source, paused, disabledReason, missing: [] };
  const missing: string[] = [];
  const shown: Record<string, SinkConfig> = {};
  for (const name of ["sink", ...CARRIERS] as const) {
    const config = definition[name];
    if (config) shown[name] = withoutSecrets(config, name, missing);
  }
  return { definition: { ...definition, ...shown }, source, paused, disabledReason, missing };
}

function withoutSecrets({ secrets, headers, ...rest }: SinkConfig, name: string, missing: string[]): SinkConfig {
  if (secrets) missing.push(`${name}.secrets`);
  const [hidden, shown] = [true, false].map((wanted) =>
    Object.entries(headers ?? {}).filter(([header]) => holdsCredential(header) === wanted),
  );
  for (const [header] of hidden ?? []) missing.push(`${name}.headers.${header}`);
  return headers === undefined ? rest : { ...rest, headers: Object.fromEntries(shown ?? []) };
}
