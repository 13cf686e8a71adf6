/** Failures that others reported, as something that ends; one that was sent again has ended: the message that carries it is ours. */
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { NewMessage } from "../../message/message.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Home, Inside, Row, Run } from "../../store/home.ts";
import { openReportsOf } from "../rows.ts";
import { lockGroups } from "./ingest-sql.ts";

/** An execution that sends reported failures of a group again, up to one of them. */
export interface Sending {
  readonly candidateId: number;
  readonly groupId: number;
  readonly executionId: string;
  readonly through: number;
}

/** Reported failures of a group, and of what was merged into it, up to one of them have ended. */
export async function closeReports(s: string, run: Run, groupId: number, through: number): Promise<void> {
  const text = `update ${s}.recovery_group set reports_closed = greatest(reports_closed, $2::bigint) where id = $1::bigint or merged_into = $1::bigint`;
  await run(text, [groupId, through]);
}

/** Of the messages `o.sent_id` of an execution; as redrive/look.ts reads them. */
const endedSql = (
  s: string,
) => `select count(*) filter (where x.healed)::text, count(*) filter (where not x.healed)::text, count(*)::text
  from ${s}.recovery_occurrence o left join lateral (select d.resolution from ${s}.dead_letter d where d.id = o.sent_id offset 0) d on true
  cross join lateral (select case
    when exists (select from ${s}.ready r where r.id = o.sent_id) or exists (select from ${s}.ready_ordered r where r.id = o.sent_id) then null
    when exists (select from ${s}.attempt a where a.message_id = o.sent_id and a.outcome in (1, 2)) or d.resolution = 1 then true
    when d.resolution in (0, 2) then false
    when not exists (select 1 from ${s}.message m where m.id = o.sent_id union all select 1 from ${s}.message_kept m where m.id = o.sent_id) then true
    end as healed) x where o.sent_by = $1 and o.sent_by is not null`;

/** One effect per report: the reporter's key where it gave one. */
function messageOf([occurrenceId, requestKey, topic, tenantId, payload]: Row, id: string): NewMessage {
  const own = requestKey?.replace(/^report:/, "failure:") ?? "";
  const key = own !== "" && Buffer.byteLength(own) <= LIMITS.keyBytesMax ? own : `failure:${occurrenceId}`;
  const text = payload ?? "null";
  return {
    ...{ id, key, tenantId: tenantId ?? null, topic: topic as string, payload: text, payloadHash: payloadHash(text) },
    ...{ delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null },
  };
}

async function send(s: string, inside: Inside, sending: Sending, limit: number, ids: () => string): Promise<number> {
  const { candidateId, executionId, groupId, through } = sending;
  // Before the candidate, as everywhere; what is sent is counted in its group.
  await lockGroups(s, inside.run, [String(groupId)]);
  const mine = `select 1::text from ${s}.recovery_candidate where id = $1::bigint and execution_status = 'executing' and execution_id = $2 for no key update`;
  if ((await inside.run(mine, [candidateId, executionId])).length === 0) return 0;
  const rows = await inside.run(
    `select o.id::text, o.request_key, o.redrive_topic, o.tenant_id, o.payload from ${openReportsOf(s, "$1::bigint")}
      where o.redrive_topic is not null and o.id <= $2::bigint order by o.id limit $3::int for no key update of o`,
    [groupId, through, limit],
  );
  if (rows.length === 0) return 0;
  const messages = rows.map((row) => messageOf(row, ids()));
  const accepted = await inside.tryEnqueue(messages, {});
  const taken = messages.find((_, i) => accepted[i]?.kind === "conflict");
  if (taken) {
    const { key, topic } = taken;
    throw new MakegoodError("key_conflict", `The key ${key} is taken in topic ${topic} by another payload.`, { key, topic });
  }
  const text = `update ${s}.recovery_occurrence o set sent_id = x.sent, sent_by = $3 from unnest($1::bigint[], $2::uuid[]) x(id, sent) where o.id = x.id`;
  await inside.run(text, [rows.map(([id]) => id), accepted.map(({ id }) => id), executionId]);
  return rows.length;
}

export type SentReports = Awaited<ReturnType<ReturnType<typeof createReports>["sentReports"]>>;

export function createReports(home: Home) {
  const { s } = home;
  const run = home.read("read reported failures");
  return {
    /** At most `limit` of them, the oldest first: the last one, and the topics of ours that they can be sent again through. */
    async openReports(groupId: number, limit: number) {
      const text = `select q.topic, count(*)::text, max(q.id)::text from (select o.redrive_topic as topic, o.id from ${openReportsOf(s, "$1::bigint")}
        order by o.id limit $2::int) q group by q.topic order by 1`;
      const rows = await run(text, [Number.isSafeInteger(groupId) ? groupId : 0, limit]);
      return {
        open: rows.reduce((sum, [, count]) => sum + Number(count), 0),
        /** What is reported later is not part of what is decided now. */
        through: Math.max(0, ...rows.map(([, , last]) => Number(last))),
        topics: rows.flatMap(([topic, count]) => (topic ? [{ topic, reports: Number(count) }] : [])),
      };
    },
    /** How far an execution is. */
    async sentReports({ groupId, executionId, through }: Sending) {
      const waiting = `select count(*)::text from ${openReportsOf(s, "$1::bigint")} where o.redrive_topic is not null and o.id <= $2::bigint`;
      const [[left] = []] = await run(waiting, [groupId, through]);
      const [counts = []] = await run(endedSql(s), [executionId]);
      const [healed = 0, failed = 0, all = 0] = counts.map(Number);
      return { waiting: Number(left), sent: all - healed - failed, healed, failed };
    },
    /** The next of them, each once, with the messages that carry them in the same write; 0: none is left, or another execution has them. */
    sendReports: (sending: Sending, limit: number, ids: () => string) =>
      home.transaction("send reported failures", (inside) => send(s, inside, sending, limit, ids)),
  };
}
