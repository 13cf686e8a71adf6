/**
 * Erasing one audit record because a person asked for it: its content and salt go, in one transaction with a signed departure. Its event id
 * stays taken, its leaf stays in its block, and a hold forbids it.
 */
import { MakegoodError } from "../message/errors.ts";
import type { Depart } from "../store/evidence.ts";
import type { Home } from "../store/home.ts";

export interface Erasure {
  readonly eventId: string;
  readonly actor: string;
  readonly reason: string;
}

/** False: there is no such record. */
export function eraseRecord({ s, transaction }: Home, depart: Depart, { eventId, actor, reason }: Erasure): Promise<boolean> {
  return transaction("erase an audit record", async ({ run }) => {
    // Against a hold that is placed at the same moment.
    await run(`lock table ${s}.audit_hold in share mode`);
    const [found] = await run(
      `select r.seq::text, r.recorded_at::text, (exists (select from ${s}.audit_hold h where h.released_at is null
        and (h.event_id = r.event_id or h.correlation_id = r.correlation_id)))::text
      from ${s}.audit_event e join ${s}.audit_record r on r.recorded_at = e.recorded_at and r.seq = e.seq where e.event_id = $1`,
      [eventId],
    );
    if (!found) return false;
    if (found[2] === "true") {
      const remedy = "`makegood audit holds` shows which; release it first";
      throw new MakegoodError("record_held", `a hold keeps record ${eventId}: ${remedy}`, { id: eventId });
    }
    const gone = await depart(run, "audit", [found[0] as string], { kind: "erased", actor, reason });
    await run(`delete from ${s}.audit_record where recorded_at = $1::timestamptz and seq = any ($2::bigint[])`, [found[1], gone]);
    return gone.length > 0;
  });
}
