/**
 * A file of messages into a store: put if absent, under the same ids, so that a run that was cut off is simply made again. Nothing is written
 * before the whole file was read and found whole; afterwards each message is looked up and compared with its line.
 */
import { MakegoodError } from "../message/errors.ts";
import type { TopicDefinition } from "../message/topic.ts";
import { type Movable, type MovableMessage, movableOf, type PutResult } from "../store/movable.ts";
import type { RecordKind, RecordTable } from "../store/movable-records.ts";
import type { Store } from "../store/store.ts";
import { eachBatch } from "./batches.ts";
import { FIXED, messageText, type Sum, type TopicLine } from "./format.ts";
import { type ImportedRecords, planRecords } from "./import-records.ts";
import { checkFile, readItems } from "./read-file.ts";
import { Sums } from "./sums.ts";

export interface ImportOptions {
  readonly store: Store;
  readonly path: string;
  readonly dryRun: boolean;
  /** Kinds of records that stay in the file. */
  readonly without?: readonly RecordKind[] | undefined;
  readonly progress?: ((step: "checked" | "put" | "compared", done: number) => void) | undefined;
}

export interface ImportedTopics {
  readonly made: readonly string[];
  /** Of those, the ones that are paused: they were, or something is missing. */
  readonly paused: readonly string[];
  /** There with another definition, which stays. */
  readonly different: readonly string[];
  /** Made without what the file does not hold, and paused until a person gives it. */
  readonly missing: Readonly<Record<string, readonly string[]>>;
}

/** What the store holds of the file, found by looking. */
export interface Compared {
  /** As in the file, or on from there: delivered, tried again, replayed. */
  readonly same: number;
  readonly movedOn: number;
  readonly absent: number;
  /** There, and not what the file says. */
  readonly wrong: number;
  readonly hash: string;
  readonly sums: readonly Sum[];
}

export interface ImportedFile extends Record<PutResult["kind"], number> {
  readonly messages: number;
  /** What the file says of itself. */
  readonly hash: string;
  readonly topics: ImportedTopics;
  /** The first of those that contradict what is there: their ids, and the ids that are there. */
  readonly contradictions: readonly { readonly id: string; readonly there: string }[];
  /** Null in a dry run. */
  readonly compared: Compared | null;
  /** By table; in a dry run as they stand before. */
  readonly records: readonly ImportedRecords[];
  readonly whole: boolean;
}

const NAMED_MAX = 20;

export async function importFile(options: ImportOptions): Promise<ImportedFile> {
  const { store, path, dryRun, progress } = options;
  const movable = movableOf(store);
  if (!movable) throw new MakegoodError("action_refused", `nothing can be imported into a ${store.traits.name} store`);
  const { closing } = await checkFile(path, (done) => progress?.("checked", done));
  const plan = await planRecords(store, path, closing, options.without ?? []);
  const topics = await putTopics(store, path, dryRun);
  const tally: Tally = { put: 0, present: 0, duplicate: 0, conflict: 0, contradictions: [], elsewhere: new Set() };
  const messages = async (batch: readonly MovableMessage[], done: number) => {
    await (dryRun ? wouldPut(movable, batch, tally) : put(movable, batch, tally));
    progress?.("put", done);
  };
  const table = async (one: RecordTable) => plan?.prepare(one);
  const rows = async (one: RecordTable, batch: readonly string[]) => plan?.put(one, batch);
  await eachBatch(path, dryRun ? { messages } : { messages, table, rows });
  const compared = dryRun ? null : await compare(movable, path, tally.elsewhere, (done) => progress?.("compared", done));
  const records = (await plan?.compare(path)) ?? [];
  const { elsewhere, contradictions, ...counts } = tally;
  const isThere = ({ absent, wrong }: Pick<Compared, "absent" | "wrong">) => absent + wrong === 0;
  const whole = tally.conflict === 0 && (dryRun || [...records, ...(compared ? [compared] : [])].every(isThere));
  return { messages: closing.messages, hash: closing.hash, topics, ...counts, contradictions, compared, records, whole };
}

interface Tally extends Record<PutResult["kind"], number> {
  readonly contradictions: { readonly id: string; readonly there: string }[];
  /** Their key belongs to another id, so they are not there under their own. */
  readonly elsewhere: Set<string>;
}

function note(tally: Tally, { id }: MovableMessage, result: PutResult): void {
  tally[result.kind]++;
  if (result.kind === "duplicate" || result.kind === "conflict") tally.elsewhere.add(id);
  if (result.kind === "conflict" && tally.contradictions.length < NAMED_MAX) tally.contradictions.push({ id, there: result.id });
}

async function put(movable: Movable, batch: readonly MovableMessage[], tally: Tally): Promise<void> {
  const results = await movable.put(batch);
  for (const [i, result] of results.entries()) note(tally, batch[i] as MovableMessage, result);
}

/** What would become of them, as far as their ids tell: whose keys are taken is found out by putting them. */
async function wouldPut(movable: Movable, batch: readonly MovableMessage[], tally: Tally): Promise<void> {
  const there = new Map((await movable.find(batch.map(({ id }) => id))).map((one) => [one.id, one]));
  for (const one of batch) {
    const known = there.get(one.id);
    note(tally, one, { kind: !known ? "put" : known.payload === one.payload ? "present" : "conflict", id: one.id });
  }
}

/** Topics come first in the file, and a store takes no message of a topic that it does not know. */
async function putTopics(store: Store, path: string, dryRun: boolean): Promise<ImportedTopics> {
  const made: string[] = [];
  const paused: string[] = [];
  const different: string[] = [];
  const missing: Record<string, readonly string[]> = {};
  for await (const item of readItems(path)) {
    if (!("topic" in item)) break;
    const { definition, ...how } = item.topic;
    const known = await store.topics.get(definition.name);
    if (known && !(known.revision === 1 && sameDefinition(known, item.topic))) {
      if (!sameDefinition(known, item.topic)) different.push(definition.name);
      continue;
    }
    // Untouched since it was made: perhaps by a run that was cut off before it could pause it.
    made.push(definition.name);
    if (how.paused || how.missing.length > 0) paused.push(definition.name);
    if (how.missing.length > 0) missing[definition.name] = how.missing;
    if (!dryRun) await make(store, item.topic);
  }
  return { made, paused, different, missing };
}

async function make(store: Store, { definition, source, paused, disabledReason, missing }: TopicLine): Promise<void> {
  await store.topics.put(definition, source);
  if (paused || missing.length > 0) await store.topics.pause(definition.name, true);
  if (disabledReason !== null) await store.topics.disable(definition.name, disabledReason);
}

/** Sinks apart: where a topic delivers to and with which secrets is the new place's own affair. */
function sameDefinition(known: TopicDefinition, { definition }: TopicLine): boolean {
  const text = ({ ordering, retry, schemaVersion, leaseMs }: TopicDefinition) =>
    JSON.stringify([ordering, retry.policy, retry.attemptsMax ?? null, schemaVersion, leaseMs]);
  return text(known) === text(definition);
}

const fixedText = (one: MovableMessage): string => JSON.stringify(FIXED.map((field) => one[field]));

/** Every message of the file, looked up in the store. */
async function compare(
  movable: Movable,
  path: string,
  elsewhere: ReadonlySet<string>,
  progress: (done: number) => void,
): Promise<Compared> {
  const sums = new Sums();
  const found = { same: 0, movedOn: 0, absent: 0, wrong: 0 };
  const messages = async (batch: readonly MovableMessage[], done: number) => {
    const expected = batch.filter(({ id }) => !elsewhere.has(id));
    const there = new Map((await movable.find(expected.map(({ id }) => id))).map((one) => [one.id, one]));
    for (const one of expected) {
      const known = there.get(one.id);
      if (known) sums.add(known);
      if (!known) found.absent++;
      else if (messageText(known) === messageText(one)) found.same++;
      else if (fixedText(known) === fixedText(one)) found.movedOn++;
      else found.wrong++;
    }
    progress(done);
  };
  await eachBatch(path, { messages });
  return { ...found, hash: sums.hash, sums: sums.list() };
}
