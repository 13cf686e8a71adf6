/** Rounds of suggestion: the next candidate of a group, with its first line of provenance. */
import type { Run } from "../../store/home.ts";
import { clockSql } from "../../store/shared/clock-sql.ts";
import { line, SYSTEM } from "../provenance.ts";
import { record } from "../provenance-sql.ts";
import { type Candidate, candidateColumns, candidateOf } from "./candidate.ts";

export interface NewRound {
  readonly group: string;
  readonly round: number;
  readonly groupVersion: number;
}

/** By group id. */
export async function openRounds(s: string, run: Run, rounds: readonly NewRound[], now: Date): Promise<Map<string, Candidate>> {
  if (rounds.length === 0) return new Map();
  const clock = clockSql(now);
  const rows = await run(
    `with c as (insert into ${s}.recovery_candidate (group_id, round, group_version, created_at, updated_at)
        select x.*, ${clock}, ${clock} from unnest($1::bigint[], $2::int[], $3::int[]) x returning *)
      select ${candidateColumns(s)} from c`,
    [rounds.map((r) => r.group), rounds.map((r) => r.round), rounds.map((r) => r.groupVersion)],
  );
  const made = rows.map(candidateOf);
  await record(
    s,
    run,
    made.map(({ groupId, candidateId, round }) => line("created", SYSTEM, { groupId, candidateId, reason: `round ${round}` })),
    { now },
  );
  return new Map(made.map((c) => [String(c.groupId), c]));
}
