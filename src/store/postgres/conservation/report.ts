/**
 * How conservation stands, from what the passes have written: broken while anything does not add up, not proven while something could not be
 * looked at or was last compared too long ago, and whole otherwise.
 */
import type { Beside, ConservationReport, ConservationState, Position } from "../../conservation.ts";
import { clockSql, epoch, fromEpoch } from "../../shared/clock-sql.ts";
import type { At } from "../../store.ts";
import { readFound, replaceFound } from "./divergences.ts";
import { heldBack } from "./held-back.ts";
import type { Ask, Mark } from "./ledger.ts";

/** A comparison of all ids that is older than this proves nothing about now. */
const ROLL_MS_MAX = 20 * 60_000;

const LIMITS: readonly string[] = [
  "What was written and deleted again between two passes is not known to have been accepted.",
  "Payloads of settled messages are compared when their hour is sealed, and again with --full.",
];

export async function reportIn(ask: Ask, s: string): Promise<ConservationReport | null> {
  const [row] = await ask(
    `select c.state, c.reason, ${epoch("c.since")}, c.pass::text, ${epoch("c.passed_at")}, ${epoch("c.rolled_at")} from ${s}.conservation c`,
  );
  if (!row) return null;
  const [sum] =
    await ask(`select coalesce(sum(accepted_n), 0)::text, coalesce(sum(delivered_n), 0)::text, coalesce(sum(resolved_n), 0)::text,
    coalesce(sum(discarded_n), 0)::text, coalesce(sum(archived_n), 0)::text, count(*)::text, count(sealed)::text,
    ${epoch("min(hour) filter (where accepted_n > delivered_n + resolved_n + discarded_n)")} from ${s}.conservation_bucket`);
  const [accepted, delivered, resolved, discarded, archived, buckets, sealed] = (sum ?? []).map(Number) as number[];
  const live = (accepted ?? 0) - (delivered ?? 0) - (resolved ?? 0) - (discarded ?? 0);
  const { divergences, total } = await readFound(ask, s);
  const held = await heldBack(ask, s);
  return {
    state: row[0] as ConservationState,
    reason: row[1] ?? null,
    since: fromEpoch(row[2]) as Date,
    pass: Number(row[3]),
    passedAt: fromEpoch(row[4]),
    comparedAt: fromEpoch(row[5]),
    totals: {
      accepted,
      delivered,
      resolved,
      discarded,
      archived,
      live,
      buckets,
      sealed,
      oldestOpenHour: fromEpoch(sum?.[7]),
    } as ConservationReport["totals"],
    divergences,
    divergencesTotal: total,
    limits: held ? [...LIMITS, `${capital(held.words)}.`] : LIMITS,
  };
}

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** Replaces what was found beside the store, and keeps how it all stands. */
export async function concludeIn(
  ask: Ask,
  s: string,
  mark: Mark,
  beside: Readonly<Record<string, Beside>>,
  { now }: At = {},
): Promise<ConservationReport> {
  for (const [place, { found, part }] of Object.entries(beside)) await replaceFound(ask, s, `beside ${place}`, found, part);
  const unproven = Object.entries(beside).flatMap(([place, { unknown }]) => (unknown === null ? [] : [`${place}: ${unknown}`]));
  const [facts] = await ask(`select (select count(*) from ${s}.conservation_divergence)::text,
    extract(epoch from ${clockSql(now)} - c.rolled_at)::text from ${s}.conservation c`);
  if (mark.phase !== 2) unproven.push("what was accepted has not been read to its end yet");
  if (!facts?.[1]) unproven.push("the ids have not all been compared yet");
  else if (Number(facts[1]) * 1_000 > ROLL_MS_MAX)
    unproven.push(`the ids were all compared ${Math.round(Number(facts[1]) / 60)} minutes ago, and not since`);
  const held = await heldBack(ask, s, { now });
  if (held?.unproven) unproven.push(held.words);
  const state = Number(facts?.[0]) > 0 ? "broken" : unproven.length > 0 ? "unknown" : "whole";
  await ask(
    `update ${s}.conservation set since = case when state = $1 then since else clock_timestamp() end, state = $1, reason = $2`,
    [state, unproven.length > 0 ? unproven.join("; ") : null],
  );
  return (await reportIn(ask, s)) as ConservationReport;
}

export const positionSql = (
  s: string,
  from: string,
): string => `select (select id::text from ${s}.installation), c.no::text, ${epoch("c.at")}, c.accepted_n::text, c.accepted_hash::text,
  c.seal_no::text, c.head from ${s}.conservation_pass c where c.no = ${from}`;
export const positionOf = ([row]: readonly (readonly (string | null)[])[]): Position | null =>
  row
    ? {
        installation: row[0] as string,
        pass: Number(row[1]),
        at: (fromEpoch(row[2]) as Date).toISOString(),
        accepted: Number(row[3]),
        acceptedHash: row[4] as string,
        seals: Number(row[5]),
        head: row[6] as string,
      }
    : null;
