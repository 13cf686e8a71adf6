/**
 * INGEST: ledger, occurrence, count, candidate, evaluation message and the mark on the dead letter are one transaction (DR-26). The
 * rows of the groups are taken first, so counts are exact.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { Home, Inside } from "../../store/home.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { INGEST_MAX, isClosed } from "../candidates/candidate-state.ts";
import { openRounds } from "../candidates/rounds.ts";
import { askEvaluation, type IngestSettings, makesRoom } from "../candidates/when.ts";
import { bringBack } from "../groups/group-writes.ts";
import { bringsBack } from "../groups/version-order.ts";
import type { FailedMessage, Ingested, NewOccurrence } from "./failure.ts";
import {
  type Counted,
  count,
  countedOf,
  dropGroups,
  insertOccurrences,
  type Known,
  type LatestOfGroup,
  type Ledgered,
  latestOf,
  ledgerOf,
  lockGroups,
  lookUp,
  makeGroups,
  makeMatches,
} from "./ingest-sql.ts";

/** One occurrence on its way in. */
interface Entry {
  readonly occurrence: NewOccurrence;
  kind: Ingested["kind"];
  /** The group's root; unset until it is known or made. */
  group: string;
  /** What the ledger has under its key, where it has. */
  ledger: Ledgered | null;
  /** The earlier one of this write with the same key. */
  repeats: Entry | null;
  first: boolean;
  queued: boolean;
}

export function createIngest(home: Home) {
  return async function ingest(occurrences: readonly NewOccurrence[], settings: IngestSettings): Promise<Ingested[]> {
    if (occurrences.length > INGEST_MAX) {
      const text = `${occurrences.length} occurrences in one call: at most ${INGEST_MAX}, send the rest in another`;
      throw new MakegoodError("invalid_request", text, { occurrences: occurrences.length });
    }
    if (occurrences.length === 0) return [];
    return home.transaction("ingest", (inside) => ingestAll(home.s, inside, occurrences, settings));
  };
}

async function ingestAll(
  s: string,
  inside: Inside,
  occurrences: readonly NewOccurrence[],
  settings: IngestSettings,
): Promise<Ingested[]> {
  const { run } = inside;
  const entries = occurrences.map(
    (occurrence): Entry => ({
      occurrence,
      kind: "accepted",
      group: "",
      ledger: null,
      repeats: null,
      first: false,
      queued: false,
    }),
  );
  const known = await lookUp(s, run, occurrences);
  matchLedger(entries, known.keys);
  const made = await placeAll(s, inside, entries, known, settings.now);

  const fixed = settings.now;
  const placed = entries.filter((e) => e.group !== "");
  const groups = placed.map((e) => e.group);
  const { now, rootOf } = await lockGroups(s, run, groups, fixed);
  for (const entry of placed) entry.group = rootOf.get(entry.group) ?? entry.group;
  // What was read before the wait may have moved to another group since.
  await matchLedgerAgain(s, inside, entries, keysOf(entries.filter((e) => e.ledger)), fixed);
  await matchMessages(s, inside, entries);

  const met = await insertOccurrences(s, run, fresh(entries), now);
  await matchLedgerAgain(s, inside, entries, met, fixed);
  for (const entry of entries) repeatOf(entry);

  const latest = await latestOf(s, run, [...new Set(entries.map((e) => e.group))]);
  const back = broughtBack(entries, latest);
  const candidates = await candidatesOf(s, inside, entries, { latest, back }, settings, now);
  await bringBack(s, run, back, candidates, now);
  const asked = ask(entries, { latest, back }, candidates, settings, now);
  await inside.enqueue(asked.messages, { now: fixed });
  const counts = countsOf(entries);
  await dropGroups(
    s,
    run,
    made.filter((group) => !counts.has(group)),
  );
  await count(s, run, { counts, evaluated: asked.candidates, deaths: deathsOf(entries) }, now);
  return entries.map((entry) => answer(entry, { latest, back }, candidates, counts));
}

/** Groups as this write finds them, and those that were resolved and that it brings back. */
interface Stand {
  readonly latest: ReadonlyMap<string, LatestOfGroup>;
  readonly back: ReadonlyMap<string, { readonly version: string | null; readonly resolvedIn: string | null }>;
}

/** What failed in a version before the one it was mended in brings nothing back. */
function broughtBack(entries: readonly Entry[], latest: Stand["latest"]): Stand["back"] {
  const back = new Map<string, { version: string | null; resolvedIn: string | null }>();
  for (const { group, occurrence } of fresh(entries)) {
    const resolved = latest.get(group)?.resolved;
    if (!resolved || back.has(group) || !bringsBack(occurrence.version, resolved.in)) continue;
    back.set(group, { version: occurrence.version ?? null, resolvedIn: resolved.in });
  }
  return back;
}

const staysResolved = ({ latest, back }: Stand, group: string): boolean =>
  Boolean(latest.get(group)?.resolved) && !back.has(group);

/** To be counted, as far as is known. */
const fresh = (entries: readonly Entry[]) => entries.filter((e) => e.kind === "accepted" && e.repeats === null);

const keysOf = (entries: readonly Entry[]): Set<string> =>
  new Set(entries.flatMap(({ occurrence: { requestKey } }) => (requestKey === null ? [] : [requestKey])));

async function matchLedgerAgain(s: string, { run }: Inside, entries: readonly Entry[], keys: ReadonlySet<string>, now?: Date) {
  if (keys.size === 0) return;
  const ledger = await ledgerOf(s, run, [...keys]);
  matchLedger(entries, ledger);
  const roots = [...ledger.values()].map(({ root }) => root);
  await lockGroups(s, run, roots, now);
}

/** A message counts once per generation and group, also when its fingerprint, and so its key, is another one now. */
async function matchMessages(s: string, { run }: Inside, entries: readonly Entry[]): Promise<void> {
  const mine = fresh(entries).filter((e) => e.occurrence.message !== null);
  const nameOf = (id: string, generation: number, root: string) => `${id} ${generation} ${root}`;
  const counted = await countedOf(
    s,
    run,
    mine.map((e) => e.occurrence.message?.id ?? ""),
  );
  const known = new Map(counted.map((one) => [nameOf(one.messageId, one.generation, one.root), one]));
  const seen = new Map<string, Entry>();
  for (const entry of mine) {
    const { id, generation } = entry.occurrence.message as FailedMessage;
    const name = nameOf(id.toLowerCase(), generation, entry.group);
    const ledger = known.get(name);
    const earlier = seen.get(name);
    if (ledger) Object.assign(entry, { ledger, kind: "duplicate" });
    else if (earlier) Object.assign(entry, { repeats: earlier, kind: "duplicate" });
    else seen.set(name, entry);
  }
}

/** What the ledger knows already, and keys that come twice here: the first counts. */
function matchLedger(entries: readonly Entry[], keys: ReadonlyMap<string, Ledgered>): void {
  const seen = new Map<string, Entry>();
  for (const entry of entries) {
    const { requestKey, payloadHash } = entry.occurrence;
    if (requestKey === null) continue;
    const ledger = keys.get(requestKey);
    if (ledger) {
      entry.ledger = ledger;
      entry.kind = ledger.hash === payloadHash ? "duplicate" : "conflict";
      entry.group = ledger.root;
    } else if (seen.has(requestKey)) entry.repeats = seen.get(requestKey) as Entry;
    else seen.set(requestKey, entry);
  }
}

function repeatOf(entry: Entry): void {
  const { repeats } = entry;
  if (repeats === null || entry.kind !== "accepted") return;
  entry.kind = repeats.occurrence.payloadHash === entry.occurrence.payloadHash ? "duplicate" : "conflict";
  entry.group = repeats.group;
}

/**
 * Finds or makes the group of each: by a supplied match id, then by fingerprint, then by the fingerprint's own match id. Returns the groups
 * that were made; one may stay empty, where another write took the match id or request key first.
 */
async function placeAll(s: string, { run }: Inside, entries: readonly Entry[], known: Known, now?: Date): Promise<string[]> {
  const wanted = fresh(entries);
  const placeOf = ({ occurrence: { failureMatchId, group } }: Entry) =>
    (failureMatchId !== null && known.matches.get(failureMatchId)) ||
    known.fingerprints.get(group.fingerprint) ||
    known.matches.get(group.failureMatchId);
  /** A supplied id that comes first here decides for those that come after it. */
  const leaders = new Map<string, Entry>();
  const leaderOf = (entry: Entry): Entry => {
    const { failureMatchId } = entry.occurrence;
    if (failureMatchId === null || known.matches.has(failureMatchId)) return entry;
    const leader = leaders.get(failureMatchId) ?? entry;
    leaders.set(failureMatchId, leader);
    return leader;
  };
  const led = wanted.map((entry) => ({ entry, leader: leaderOf(entry) }));
  const missing = new Map(
    led.flatMap(({ leader }) =>
      placeOf(leader) ? [] : [[leader.occurrence.group.fingerprint, leader.occurrence.group] as const],
    ),
  );
  const groups = await makeGroups(s, run, [...missing.values()], now);
  for (const { entry, leader } of led)
    entry.group = placeOf(leader) || (groups.get(leader.occurrence.group.fingerprint)?.root as string);
  for (const [fingerprint, group] of groups) {
    const maker = wanted.find((e) => e.group === group.root);
    const own = missing.get(fingerprint)?.failureMatchId;
    if (!group.made || !maker || own === undefined) continue;
    maker.first = true;
    if (!leaders.has(own)) leaders.set(own, maker);
  }
  const made = [...groups.values()].flatMap((group) => (group.made ? [group.root] : []));
  if (leaders.size === 0) return made;
  const elsewhere = await makeMatches(s, run, new Map([...leaders].map(([match, { group }]) => [match, group])));
  for (const { entry } of led) {
    const root = entry.occurrence.failureMatchId !== null && elsewhere.get(entry.occurrence.failureMatchId);
    if (!root || root === entry.group) continue;
    entry.group = root;
    entry.first = false;
  }
  return made;
}

/** The candidate of each group: a new round where there is none, or where the last one is closed and makes room for what was counted. */
async function candidatesOf(
  s: string,
  { run }: Inside,
  entries: readonly Entry[],
  stand: Stand,
  settings: IngestSettings,
  now: Date,
): Promise<Map<string, Candidate>> {
  const { latest, back } = stand;
  const candidates = new Map<string, Candidate>();
  for (const [group, { candidate }] of latest) if (candidate) candidates.set(group, candidate);
  const counted = new Set(fresh(entries).map((e) => e.group));
  const due = [...new Set(entries.map((e) => e.group))].filter((group) => {
    const candidate = candidates.get(group);
    if (!candidate || !counted.has(group) || !isClosed(candidate)) return !candidate;
    return back.has(group) || (!staysResolved(stand, group) && makesRoom(candidate, now, settings.rejectedRestMs));
  });
  const rounds = due.map((group) => ({
    group,
    round: (candidates.get(group)?.round ?? 0) + 1,
    groupVersion: latest.get(group)?.version ?? 1,
  }));
  for (const [group, candidate] of await openRounds(s, run, rounds, now)) candidates.set(group, candidate);
  return candidates;
}

/** Once per group in which something was counted that may be evaluated. */
function ask(
  entries: readonly Entry[],
  stand: Stand,
  candidates: ReadonlyMap<string, Candidate>,
  settings: IngestSettings,
  now: Date,
): { messages: NewMessage[]; candidates: number[] } {
  const messages: NewMessage[] = [];
  const asked: number[] = [];
  const counts = countsOf(entries);
  const evaluating = fresh(entries).filter((e) => e.occurrence.evaluate);
  for (const group of new Set(evaluating.map((e) => e.group))) {
    const before = stand.latest.get(group)?.occurrenceCount ?? 0;
    const candidate = candidates.get(group) as Candidate;
    if (isClosed(candidate) || staysResolved(stand, group)) continue;
    const due = askEvaluation(settings, candidate, { occurrences: before + (counts.get(group) ?? 0), before, now });
    if (!due) continue;
    messages.push(due.message);
    asked.push(candidate.candidateId);
    for (const entry of evaluating) if (entry.group === group) entry.queued = true;
  }
  return { messages, candidates: asked };
}

function countsOf(entries: readonly Entry[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { group } of fresh(entries)) counts.set(group, (counts.get(group) ?? 0) + 1);
  return counts;
}

/**
 * A death is ingested also when the ledger has its key already: else it would be queued for ever. Of two of one message the later
 * counts.
 */
function deathsOf(entries: readonly Entry[]): Counted["deaths"] {
  const deaths = new Map<string, Counted["deaths"][number]>();
  for (const {
    occurrence: { message },
    kind,
    ledger,
    group,
  } of entries) {
    if (message === null || (deaths.get(message.id)?.attempts ?? -1) > message.attempts) continue;
    deaths.set(message.id, {
      id: message.id,
      attempts: message.attempts,
      group: kind === "conflict" ? null : (ledger?.group ?? group),
      occurrenceId: kind === "duplicate" ? (ledger?.occurrenceId ?? null) : null,
    });
  }
  return [...deaths.values()];
}

function answer(
  entry: Entry,
  { latest, back }: Stand,
  candidates: ReadonlyMap<string, Candidate>,
  counts: ReadonlyMap<string, number>,
): Ingested {
  const { kind, group, occurrence, first, queued } = entry;
  const of = latest.get(group) as LatestOfGroup;
  return {
    kind,
    groupId: Number(group),
    candidateId: candidates.get(group)?.candidateId ?? 0,
    failureMatchId: occurrence.failureMatchId ?? of.failureMatchId,
    occurrenceCount: of.occurrenceCount + (counts.get(group) ?? 0),
    first: first && kind === "accepted",
    regression: back.has(group) && kind === "accepted",
    evaluationQueued: queued,
  };
}
