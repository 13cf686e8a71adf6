/**
 * The append-only record: lines are written with the change they tell of, and read newest first.
 */

import type { Home, Run } from "../store/home.ts";
import { clockSql } from "../store/shared/clock-sql.ts";
import type { At } from "../store/store.ts";
import type { Paged } from "./pages.ts";
import { idCursor, type Page, paged, pageLimit } from "./pages.ts";
import { type NewProvenance, PROVENANCE, type Provenance } from "./provenance.ts";

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

export interface ProvenanceOf {
  readonly groupId?: number;
  readonly candidateId?: number;
  readonly redriveId?: string;
}

export function createProvenance(home: Home) {
  const { s } = home;
  const run = home.read("read provenance");
  return {
    /** Newest first; lines that fit all members given. A group's own lines, not those of groups merged into it. */
    async provenance({ groupId, candidateId, redriveId }: ProvenanceOf, page: Page): Promise<Paged<Provenance>> {
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
      return paged((await run(text, values)).map(PROVENANCE.of), page.limit, (last) => String(last.provenanceId));
    },
    note: (lines: readonly NewProvenance[], at: At = {}) =>
      home.transaction("note", ({ run: inside }) => record(s, inside, lines, at)),
  };
}
