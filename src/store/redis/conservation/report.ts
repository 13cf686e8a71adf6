/**
 * How conservation stands, from what the passes have written: broken while anything does not add up, not proven while something could not be looked at or was
 * last compared too long ago, and whole otherwise.
 */
import type { Beside, ConservationReport, ConservationState, Position } from "../../conservation.ts";
import type { Db } from "../db.ts";
import { fieldsOf } from "../rows.ts";
import { readFound, replaceFound } from "./found.ts";
import { READ_BOOKS, SET_BOOKS } from "./report-scripts.ts";

/** A comparison of all ids that is older than this proves nothing about now. */
const ROLL_MS_MAX = 2 * 3_600_000;

const LIMITS: readonly string[] = [
  "What was accepted and deleted again with its entry in the intake, between two passes, is not known to have been accepted.",
  "A payload that was changed before the pass that counted it in is taken for the one that was accepted.",
  "Payloads of settled messages are compared when their hour is sealed, and again with --full.",
  "Settled messages that went wholly are counted, not named.",
];

export interface Books {
  readonly nowMs: number;
  /** The mark of this data: another one is other data. */
  readonly born: string;
  readonly fields: ReadonlyMap<string, string>;
  readonly found: unknown;
}

export async function readBooks(db: Db): Promise<Books> {
  const [stamp, born, flat, found] = (await db.run(READ_BOOKS, [db.keys.key("books")], [])) as [string, string, unknown, unknown];
  return { nowMs: Number(stamp), born, fields: fieldsOf(flat) ?? new Map(), found };
}

export const numberOf = ({ fields }: Books, name: string): number => Number(fields.get(name) ?? 0);

export const setBooks = (db: Db, values: Readonly<Record<string, string | number>>): Promise<unknown> =>
  db.run(SET_BOOKS, [db.keys.key("books")], Object.entries(values).flat());

/** `@` is the store's time. */
export const NOW = "@";

const dateOf = (text: string | undefined): Date | null => (text === undefined ? null : new Date(Number(text)));

export function reportOf(books: Books): ConservationReport | null {
  const { fields } = books;
  if (!fields.has("began") || !fields.has("pass")) return null;
  const [accepted, delivered, resolved, discarded, archived, buckets, sealed] = [
    "accepted",
    "delivered",
    "resolved",
    "discarded",
    "archived",
    "buckets",
    "sealed",
  ].map((name) => numberOf(books, name)) as [number, number, number, number, number, number, number];
  const { divergences, total } = readFound(books.found);
  const live = accepted - delivered - resolved - discarded;
  const [unseen, unadded] = [numberOf(books, "unseen"), numberOf(books, "unadded")];
  const before = "a process of the version before";
  return {
    state: fields.get("state") as ConservationState,
    reason: fields.get("reason") || null,
    since: dateOf(fields.get("since")) as Date,
    pass: numberOf(books, "pass"),
    passedAt: dateOf(fields.get("passed")),
    comparedAt: dateOf(fields.get("rolled")),
    totals: {
      ...{ accepted, delivered, resolved, discarded, archived, live, buckets, sealed },
      oldestOpenHour: live > 0 ? dateOf(fields.get("oldest")) : null,
    },
    divergences,
    divergencesTotal: total,
    limits: [
      ...LIMITS,
      ...(unseen > 0
        ? [`${unseen} messages that ${before} accepted were gone before they were counted: they are in no account.`]
        : []),
      ...(unadded > 0 ? [`${unadded} messages that ${before} took by retention were not added up when they went.`] : []),
    ],
  };
}

/** Replaces what was found beside the store, and keeps how it all stands. */
export async function concludeIn(db: Db, beside: Readonly<Record<string, Beside>>): Promise<ConservationReport> {
  for (const [place, { found }] of Object.entries(beside)) await replaceFound(db, `beside ${place}`, found);
  const unproven = Object.entries(beside).flatMap(([place, { unknown }]) => (unknown === null ? [] : [`${place}: ${unknown}`]));
  const books = await readBooks(db);
  const rolled = books.fields.get("rolled");
  if (!books.fields.has("counted")) unproven.push("what was here before there were accounts has not all been counted yet");
  if (numberOf(books, "uncounted") > 0)
    unproven.push(`a process of the version before accepted ${numberOf(books, "uncounted")} messages that are not counted yet`);
  if (rolled === undefined) unproven.push("the ids have not all been compared yet");
  else if (books.nowMs - Number(rolled) > ROLL_MS_MAX)
    unproven.push(`the ids were all compared ${Math.round((books.nowMs - Number(rolled)) / 60_000)} minutes ago, and not since`);
  const state = readFound(books.found).total > 0 ? "broken" : unproven.length > 0 ? "unknown" : "whole";
  await setBooks(db, { state, reason: unproven.join("; ") });
  return reportOf(await readBooks(db)) as ConservationReport;
}

/** Which store it is: the same after its data was lost, so that a witness finds that. */
const installationOf = (db: Db): string => `redis ${db.keys.root}`;

/** Of the last pass; before the first it is the position of a store that has none. */
export function positionNow(db: Db, books: Books): Position {
  const { fields } = books;
  return {
    installation: installationOf(db),
    pass: numberOf(books, "pass"),
    at: (dateOf(fields.get("passed")) ?? new Date(books.nowMs)).toISOString(),
    accepted: numberOf(books, "accepted"),
    acceptedHash: fields.get("hash") ?? "0",
    seals: numberOf(books, "seals"),
    head: fields.get("head") ?? "",
  };
}

/** As NOTE writes it. */
export function positionThen(db: Db, pass: number, text: string | null): Position | null {
  if (text === null) return null;
  const [at, accepted, acceptedHash = "", seals, head = ""] = text.split(" ");
  const of = { installation: installationOf(db), pass, at: new Date(Number(at)).toISOString() };
  return { ...of, accepted: Number(accepted), acceptedHash, seals: Number(seals), head };
}
