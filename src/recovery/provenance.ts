/** The append-only record: who did what to which group or candidate, and why. Lines are written with the change they tell of. */
import type { Home, Run } from "../store/home.ts";
import { clockSql } from "../store/shared/clock-sql.ts";
import type { At } from "../store/store.ts";
import { columns, int, intOrNull, moment, text, textOrNull } from "./columns.ts";
import { idCursor, type Page, paged, pageLimit } from "./pages.ts";
import type { Actor } from "./recovery.ts";

export type ActorType = "system" | "human" | "agent";

/** Of `recovery_provenance p`. Nothing ever changes or deletes a line (DR-40). */
export const PROVENANCE = columns({
  provenanceId: int("p.id"),
  at: moment("p.at"),
  groupId: intOrNull("p.group_id"),
  candidateId: intOrNull("p.candidate_id"),
  redriveId: textOrNull("p.redrive_id"),
  /** created, rule_evaluated, action_selected, approved, rejected, executing, executed, … */
  eventType: text("p.event"),
  actor: text("p.actor"),
  actorType: text<ActorType>("p.actor_type"),
  reason: textOrNull("p.reason"),
  ruleId: textOrNull("p.rule"),
  action: textOrNull("p.action"),
  confidenceBefore: intOrNull("p.confidence_before"),
  confidenceAfter: intOrNull("p.confidence_after"),
  durationMs: intOrNull("p.duration_ms"),
  /** JSON text. */
  details: textOrNull("p.details"),
});

export type Provenance = ReturnType<typeof PROVENANCE.of>;

type Who = "eventType" | "actor" | "actorType";
type Said = { readonly [K in Exclude<keyof Provenance, Who | "provenanceId" | "at">]?: Provenance[K] | undefined };

/** A line to be written; what is not said stays empty. */
export interface NewProvenance extends Pick<Provenance, Who>, Said {}

export const SYSTEM: Actor = { actor: "system", actorType: "system" };

/** `details` are written as JSON. */
export function line(
  eventType: string,
  { actor, actorType }: Actor,
  { details, ...said }: Omit<Said, "details"> & { readonly details?: Readonly<Record<string, unknown>> | undefined } = {},
): NewProvenance {
  return { ...said, eventType, actor, actorType, details: details && JSON.stringify(details) };
}

const insertSql = (s: string, now: Date | undefined) => `insert into ${s}.recovery_provenance
    (at, group_id, candidate_id, redrive_id, event, actor, actor_type, reason, rule, action, confidence_before, confidence_after, duration_ms, details)
  select ${clockSql(now)}, x.* from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::text[]) x`;

const FIELDS = [
  ...(["groupId", "candidateId", "redriveId", "eventType", "actor", "actorType", "reason", "ruleId", "action"] as const),
  ...(["confidenceBefore", "confidenceAfter", "durationMs", "details"] as const),
];

export async function record(s: string, run: Run, lines: readonly NewProvenance[], { now }: At): Promise<void> {
  if (lines.length === 0) return;
  const columns = FIELDS.map((name) => lines.map((line) => line[name] ?? null));
  await run(insertSql(s, now), columns);
}

export type ProvenanceOf = Partial<Record<"groupId" | "candidateId", number> & Record<"redriveId", string>>;

export function createProvenance(home: Home) {
  const { s } = home;
  const run = home.read("read provenance");
  return {
    /** Newest first; lines that fit all members given. A group's own lines, not those of groups merged into it. */
    async provenance({ groupId, candidateId, redriveId }: ProvenanceOf, page: Page) {
      const values: unknown[] = [idCursor(page.cursor), pageLimit(page.limit) + 1];
      const where = ["p.id < $1::bigint"];
      const asked = { group_id: groupId, candidate_id: candidateId, redrive_id: redriveId };
      for (const [name, value] of Object.entries(asked)) {
        if (value === undefined) continue;
        if (typeof value === "number" && !Number.isSafeInteger(value)) return { data: [], nextCursor: null };
        values.push(value);
        where.push(`p.${name} = $${values.length}`);
      }
      const text = `select ${PROVENANCE.list} from ${s}.recovery_provenance p where ${where.join(" and ")} order by p.id desc limit $2::int`;
      const rows = (await run(text, values)).map(PROVENANCE.of);
      return paged(rows, page.limit, (last) => String(last.provenanceId));
    },
    note: (lines: readonly NewProvenance[], at: At = {}) =>
      home.transaction("note", ({ run: inside }) => record(s, inside, lines, at)),
  };
}
