/** One audit record in: 201 stored, 200 it was there, 202 queued (EV-15), 400 quarantined; 507 and 503: the producer keeps it. */
import { createIds } from "../../platform/ids.ts";
import { faultText } from "../../presets/audit/record.ts";
import { AUDIT_TYPES } from "../../presets/audit/registry.ts";
import { type AcceptedRecord, acceptRecord } from "../../presets/audit/topics.ts";
import { auditOf } from "../../store/audit.ts";
import { json, problem, type Reply, refused } from "../http.ts";
import { traceparentOf } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

const newId = createIds();

export const AUDIT: Handlers<"recordAudit"> = {
  async recordAudit(asked, { mg, clock }) {
    const { params, actor, body: text } = asked;
    const kind = AUDIT_TYPES.find(({ type }) => type === params.type);
    if (!kind) throw refused("not_found", "there is nothing at this address");
    if (auditOf(mg.store) === null)
      throw refused("needs_postgres", `audit records need PostgreSQL, and this server's store is ${mg.store.traits.name}`);
    const from = { actor, occurredMs: clock.wallMs(), traceparent: traceparentOf(asked) };
    return answer(await acceptRecord(mg, kind.type, { text, newId, ...from }));
  },
};

const REMEDY = "keep it and send it again";

function answer(record: AcceptedRecord): Reply {
  switch (record.is) {
    case "stored":
    case "duplicate":
      return json(record.is === "stored" ? 201 : 200, { event_id: record.eventId, status: record.is });
    case "queued":
      return json(202, { event_id: record.eventId, status: record.is, message_id: record.id, survives: record.survives });
    case "full":
      return problem("store_full", `the audit database is full and nothing else could take the record: ${REMEDY}`);
    case "unavailable":
      return problem("store_unavailable", `neither the database nor the queue could take the record: ${REMEDY}`);
    case "unfit": {
      const { faults, quarantined, id } = record;
      const errors = faults.map(({ field, detail }) => ({ field, code: "invalid_payload" as const, detail }));
      const members = { quarantined, message_id: quarantined ? (id ?? null) : null };
      return problem("invalid_payload", `the record does not fit: ${faultText(faults)}`, { errors, members });
    }
    default: {
      const { eventId, quarantined, id, code } = record;
      const members = { event_id: eventId, quarantined, message_id: id };
      if (record.is === "refused") return problem("invalid_payload", `the record is refused (${code})`, { members });
      const words = "is already there with another text: an event id names one record for ever";
      return problem("key_conflict", `event ${JSON.stringify(eventId)} ${words}`, { members });
    }
  }
}
