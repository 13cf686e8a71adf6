/**
 * CARRIED: which dead letters have a copy on its way to another receiver. Asked where such a message is to be sent itself: inside the
 * write, after its row was taken, which a transaction that sends a copy of it takes as well.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Carrier } from "../../message/topic.ts";
import type { Run } from "../../store/home.ts";
import { columns, text } from "../columns.ts";

const CARRIED = columns({
  messageId: text("i.message_id::text"),
  carrierId: text("i.carrier_id::text"),
  redriveId: text("i.redrive_id::text"),
});

/**
 * `ids`: messages; `beside`: a carrier whose own copies are none of it, or null. Delivered counts until the original is resolved, which
 * happens only to one that stands as it was copied. `offset 0`: each carrier is looked up by itself, and no table is read whole for many.
 */
export const carriedSql = (
  s: string,
  ids = "($1::uuid[])",
  beside = "$2::text",
) => `select distinct on (i.message_id) ${CARRIED.list} from ${s}.redrive_item i
  where i.message_id = any ${ids} and i.sent_at is not null and i.carrier_id is not null
    and exists (select from ${s}.redrive r where r.id = i.redrive_id and r.mode = 'copy' and coalesce(r.plan::json ->> 'carrier', '') is distinct from ${beside} offset 0)
    and case when exists (select from ${s}.attempt a where a.message_id = i.carrier_id and a.outcome in (1, 2) offset 0)
      then exists (select from ${s}.dead_letter d where d.id = i.message_id and d.resolution = 0 and d.revision = i.revision offset 0)
      else not exists (select from ${s}.dead_letter d where d.id = i.carrier_id and d.resolution < 3 offset 0)
        and (exists (select from ${s}.message m where m.id = i.carrier_id offset 0)
          or exists (select from ${s}.message_kept m where m.id = i.carrier_id offset 0)) end
  order by i.message_id, i.sent_at`;

/** `beside`: this carrier's own copies do not count, as those are the same effect once more. */
export async function carriedAmong(s: string, run: Run, ids: readonly string[], beside: Carrier | null = null) {
  if (ids.length === 0) return [];
  return (await run(carriedSql(s), [ids, beside], { name: "mg_redrive_carried" })).map((row) => CARRIED.of(row));
}

export function carriedError({ messageId, carrierId, redriveId }: ReturnType<typeof CARRIED.of>): MakegoodError {
  const said = `message ${messageId} is on its way to another receiver as message ${carrierId} (redrive ${redriveId}): wait until that is known, discard message ${carrierId}, or say force if both may get it`;
  return new MakegoodError("carried", said, { id: messageId, carrierId, redriveId });
}
