/** INGEST: ledger, occurrence, count, candidate, evaluation message and the mark on the dead letter are one transaction (DR-26). */
import { MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import type { Fence } from "../../platform/job.ts";
import type { Home, Inside, Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { INGEST_MAX, isClosed } from "../candidates/candidate-state.ts";
import { askEvaluation, type IngestSettings, makesRoom, openRounds } from "../candidates/rounds.ts";
import { bringsBack } from "../groups/version-order.ts";
import { line, record, SYSTEM } from "../provenance.ts";
import type { FailedMessage, NewOccurrence } from "./failure.ts";
import * as sql from "./ingest-sql.ts";

/** One occurrence on its way in. */
export interface Entry {
  readonly occurrence: NewOccurrence;
  /** `conflict`: the key belongs to another payload; nothing is counted. */
  kind: "accepted" | "duplicate" | "conflict";
  /** The group's root; empty until it is known or made. */
  group: string;
  /** What the ledger has of it, where it has. */
  ledger?: sql.Ledgered | undefined;
  /** The earlier one of this write with the same key or message. */
  repeats?: Entry | undefined;
  first: boolean;
  queued: boolean;
}

export function createIngest(home: Home) {
  /** `under`: of a led job; what it would write once that has ended is refused. */
  return async function ingest(occurrences: readonly NewOccurrence[], settings: IngestSettings, under: Fence | null = null) {
    if (occurrences.length > INGEST_MAX) {
      const text = `${occurrences.length} occurrences in one call: at most ${INGEST_MAX}, send the rest in another`;
      throw new MakegoodError("invalid_request", text, { occurrences: occurrences.length });
    }
    if (occurrences.length === 0) return [];
    return home.transaction("ingest", (inside) => ingestAll(home.s, inside, occurrences, settings), under);
  };
}

async function ingestAll(s: string, inside: Inside, occurrences: readonly NewOccurrence[], settings: IngestSettings) {
  const { run } = inside;
  const fixed = settings.now;
  const start = { kind: "accepted", group: "", first: false, queued: false } as const;
  const entries = occurrences.map((occurrence): Entry => ({ ...start, occurrence }));
  const known = await sql.lookUp(s, run, occurrences);
  matchLedger(entries, known);
  const made = await placeAll(s, run, entries, known, fixed);

  const placed = entries.filter((e) => e.group !== "");
  const groups = placed.map((e) => e.group);
  // Before anything is counted, so counts are exact.
  const { now, rootOf } = await sql.lockGroups(s, run, groups, fixed);
  for (const entry of placed) entry.group = rootOf.get(entry.group) ?? entry.group;
  // What was read before the wait may have moved to another group since.
  const ledgered = entries.filter((e) => e.ledger).map((e) => e.occurrence.requestKey as string);
  await matchLedgerAgain(s, run, entries, ledgered, fixed);
  await matchMessages(s, run, entries);

  const met = await sql.insertOccurrences(s, run, fresh(entries), now);
  await matchLedgerAgain(s, run, entries, met, fixed);
  for (const entry of entries) if (entry.repeats && !entry.ledger) entry.group = entry.repeats.group;

  const standings = await standingsOf(s, run, entries);
  await openDueRounds(s, run, standings, settings, now);
  await bringBack(s, run, standings, now);
  const asked = ask(standings, settings, now);
  await inside.enqueue(asked.messages, { now: fixed });
  const counting = [...standings].filter(([, { counted }]) => counted.length > 0);
  const counts = new Map(counting.map(([group, { counted }]) => [group, counted.length]));
  const empty = made.filter((group) => !counts.has(group));
  await sql.dropGroups(s, run, empty);
  await sql.count(s, run, counts, asked.candidates, deathsOf(entries), now);
  return entries.map((entry) => answer(entry, standings.get(entry.group) as Standing));
}

/** To be counted, as far as is known. */
const fresh = (entries: readonly Entry[]) => entries.filter((e) => e.kind === "accepted");

/** What the ledger knows already, and keys that come twice here: the first counts. */
function matchLedger(entries: readonly Entry[], ledger: sql.Known): void {
  const seen = new Map<string, Entry>();
  for (const entry of entries) {
    const { requestKey, payloadHash } = entry.occurrence;
    if (requestKey === null) continue;
    const kept = ledger.get(`key ${requestKey}`);
    const earlier = seen.get(requestKey);
    if (kept) {
      const kind = kept.hash === payloadHash ? "duplicate" : "conflict";
      Object.assign(entry, { ledger: kept, kind, group: kept.root });
    } else if (entry.kind !== "accepted") continue;
    else if (earlier) {
      const kind = earlier.occurrence.payloadHash === payloadHash ? "duplicate" : "conflict";
      Object.assign(entry, { repeats: earlier, kind });
    } else seen.set(requestKey, entry);
  }
}

async function matchLedgerAgain(s: string, run: Run, entries: readonly Entry[], keys: readonly string[], now?: Date) {
  if (keys.length === 0) return;
  const ledger = await sql.ledgerOf(s, run, keys);
  matchLedger(entries, ledger);
  const roots = [...ledger.values()].map(({ root }) => root);
  await sql.lockGroups(s, run, roots, now);
}

/** A message counts once per generation and group, also when its fingerprint, and so its key, is another one now. */
async function matchMessages(s: string, run: Run, entries: readonly Entry[]): Promise<void> {
  const mine = fresh(entries).filter((e) => e.occurrence.message !== null);
  const ids = mine.map((e) => e.occurrence.message?.id ?? "");
  const counted = await sql.countedOf(s, run, ids);
  const seen = new Map<string, Entry>();
  for (const entry of mine) {
    const { id, generation } = entry.occurrence.message as FailedMessage;
    const name = `${id.toLowerCase()} ${generation} ${entry.group}`;
    const [ledger, repeats] = [counted.get(name), seen.get(name)];
    if (ledger || repeats) Object.assign(entry, { ledger, repeats, kind: "duplicate" });
    else seen.set(name, entry);
  }
}

/**
 * Finds or makes the group of each: by a supplied match id, then by fingerprint, then by the fingerprint's own match id. Returns those that
 * were made; one may stay empty, where another write took the match id or request key first.
 */
async function placeAll(s: string, run: Run, entries: readonly Entry[], known: sql.Known, now?: Date): Promise<string[]> {
  const placeOf = ({ occurrence: { failureMatchId, group } }: Entry) => {
    const names = [`match ${failureMatchId}`, `fingerprint ${group.fingerprint}`, `match ${group.failureMatchId}`];
    return names.map((name) => known.get(name)?.root).find((root) => root !== undefined);
  };
  /** A supplied id that comes first here decides for those that come after it. */
  const leaders = new Map<string, Entry>();
  const led = fresh(entries).map((entry) => {
    const { failureMatchId } = entry.occurrence;
    if (failureMatchId === null || known.has(`match ${failureMatchId}`)) return { entry, leader: entry };
    const leader = leaders.get(failureMatchId) ?? entry;
    leaders.set(failureMatchId, leader);
    return { entry, leader };
  });
  const missing = led.filter(({ leader }) => !placeOf(leader)).map(({ leader }) => leader.occurrence.group);
  const identities = new Map(missing.map((group) => [group.fingerprint, group]));
  const groups = await sql.makeGroups(s, run, [...identities.values()], now);
  for (const { entry, leader } of led) {
    entry.group = placeOf(leader) ?? (groups.get(leader.occurrence.group.fingerprint)?.root as string);
  }
  const made = [...groups].filter(([, group]) => group.made);
  for (const [fingerprint, { root }] of made) {
    const maker = led.find(({ entry }) => entry.group === root)?.entry as Entry;
    const own = identities.get(fingerprint)?.failureMatchId as string;
    maker.first = true;
    if (!leaders.has(own)) leaders.set(own, maker);
  }
  const elsewhere = await sql.makeMatches(s, run, new Map([...leaders].map(([match, { group }]) => [match, group])));
  for (const { entry } of led) {
    const root = elsewhere.get(entry.occurrence.failureMatchId ?? "");
    if (root && root !== entry.group) Object.assign(entry, { group: root, first: false });
  }
  return made.map(([, { root }]) => root);
}

type LatestOfGroup = NonNullable<ReturnType<Awaited<ReturnType<typeof sql.latestOf>>["get"]>>;

/** A group as this write finds it, and what the write does to it. */
interface Standing extends LatestOfGroup {
  /** The latest of the group, or of the round that this write opens. */
  candidate: Candidate | null;
  readonly counted: readonly Entry[];
  /** It was resolved, and this one brings it back. */
  readonly back: Entry | undefined;
}

type Standings = ReadonlyMap<string, Standing>;

async function standingsOf(s: string, run: Run, entries: readonly Entry[]): Promise<Standings> {
  const groups = [...new Set(entries.map((e) => e.group))];
  const latest = await sql.latestOf(s, run, groups);
  return new Map(
    groups.map((group) => {
      const now = latest.get(group) as LatestOfGroup;
      const counted = fresh(entries).filter((e) => e.group === group);
      // What failed in a version before the one it was mended in brings nothing back.
      const back = now.resolved ? counted.find((e) => bringsBack(e.occurrence.version, now.resolvedIn)) : undefined;
      return [group, { ...now, resolved: now.resolved && !back, counted, back }];
    }),
  );
}

/** A new round where there is none, or where the last one is closed and makes room for what was counted. */
async function openDueRounds(s: string, run: Run, standings: Standings, settings: IngestSettings, now: Date): Promise<void> {
  const due = [...standings].filter(([, { candidate, counted, back, resolved }]) => {
    if (!candidate) return true;
    if (counted.length === 0 || resolved || !isClosed(candidate)) return false;
    return back || makesRoom(candidate, now, settings.rejectedRestMs);
  });
  const roundOf = (candidate: Candidate | null): number => (candidate?.round ?? 0) + 1;
  const rounds = due.map(([group, of]) => ({ group, round: roundOf(of.candidate), groupVersion: of.version }));
  for (const [group, candidate] of await openRounds(s, run, rounds, now)) {
    Object.assign(standings.get(group) as Standing, { candidate });
  }
}

/** Resolved groups that failures of this write bring back, with the version of the first; on record with the candidate of the new round. */
async function bringBack(s: string, run: Run, standings: Standings, now: Date): Promise<void> {
  const regressed = [...standings].filter(([, { back }]) => back);
  if (regressed.length === 0) return;
  const versions = regressed.map(([, { back }]) => back?.occurrence.version ?? null);
  const text = `update ${s}.recovery_group g set regressed_at = ${clockSql(now)}, regressed_in = x.version
    from unnest($1::bigint[], $2::text[]) x(id, version) where g.id = x.id`;
  await run(text, [regressed.map(([group]) => group), versions]);
  const within = (version: string | null): string => (version === null ? "" : ` in ${version}`);
  const lines = regressed.map(([group, { resolvedIn, candidate }], i) => {
    const version = versions[i] ?? null;
    const reason = `it was resolved${within(resolvedIn)} and failed again${within(version)}`;
    const details = { version, resolved_in: resolvedIn };
    return line("regression", SYSTEM, { groupId: Number(group), candidateId: candidate?.candidateId, reason, details });
  });
  await record(s, run, lines, { now });
}

/** Once per group in which something was counted that may be evaluated. */
function ask(standings: Standings, settings: IngestSettings, now: Date) {
  const messages: NewMessage[] = [];
  const candidates: number[] = [];
  for (const { candidate, counted, resolved, occurrenceCount: before } of standings.values()) {
    const evaluating = counted.filter((e) => e.occurrence.evaluate);
    if (evaluating.length === 0 || resolved || !candidate || isClosed(candidate)) continue;
    const due = askEvaluation(settings, candidate, { occurrences: before + counted.length, before, now });
    if (!due) continue;
    messages.push(due.message);
    candidates.push(candidate.candidateId);
    for (const entry of evaluating) entry.queued = true;
  }
  return { messages, candidates };
}

/** A death is ingested also when the ledger has its key already: else it would be queued for ever. Of two of one message the later counts. */
function deathsOf(entries: readonly Entry[]): sql.Death[] {
  const deaths = new Map<string, sql.Death>();
  for (const { occurrence, kind, ledger, group: root } of entries) {
    if (occurrence.message === null) continue;
    const { id, attempts } = occurrence.message;
    if ((deaths.get(id)?.attempts ?? -1) > attempts) continue;
    const group = kind === "conflict" ? null : (ledger?.group ?? root);
    deaths.set(id, { id, attempts, group, occurrenceId: kind === "duplicate" ? (ledger?.occurrenceId ?? null) : null });
  }
  return [...deaths.values()];
}

/** Ids and the count are as after the whole write, for a group that was merged those of the one it became part of. */
function answer({ kind, group, occurrence, first, queued }: Entry, of: Standing) {
  const counted = kind === "accepted";
  return {
    kind,
    groupId: Number(group),
    candidateId: of.candidate?.candidateId ?? 0,
    /** The supplied one, else the group's own. */
    failureMatchId: occurrence.failureMatchId ?? of.failureMatchId,
    occurrenceCount: of.occurrenceCount + of.counted.length,
    /** It made the group. */
    first: first && counted,
    /** It brought a resolved group back. */
    regression: of.back !== undefined && counted,
    evaluationQueued: queued,
  };
}

export type Ingested = Readonly<ReturnType<typeof answer>>;
