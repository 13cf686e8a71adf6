/** Audit records and evidence over HTTP. Who wrote a record is the token's name; what the producer claims stays in its text (EV-25). */
import { auditHold, auditRecord } from "../../contract/audit.ts";
import { PAYLOAD_PAGE_MAX } from "../../contract/messages.ts";
import { momentOf } from "../../contract/values.ts";
import type { Evidence } from "../../evidence/evidence.ts";
import type { Proof } from "../../evidence/proof.ts";
import type { VerifyPlace } from "../../evidence/verify.ts";
import { createIds } from "../../platform/ids.ts";
import { faultText } from "../../presets/audit/record.ts";
import { auditKinds } from "../../presets/audit/registry.ts";
import { type AcceptedRecord, acceptRecord } from "../../presets/audit/topics.ts";
import { type AuditStore, auditOf, type StoredAudit } from "../../store/audit.ts";
import type { EvidenceName } from "../../store/evidence.ts";
import { json, jsonText, notFound, page, pageText, problem, type Reply, refused, spliced } from "../http.ts";
import { wireOf } from "../json/wire.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, limited, refusalOf, traceparentOf } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

const newId = createIds();

function keptIn({ mg }: Kernel): AuditStore {
  const audit = auditOf(mg.store);
  if (audit === null)
    throw refused("needs_postgres", `audit records need PostgreSQL, and this server's store is ${mg.store.traits.name}`);
  return audit;
}

function evidenceOf({ mg }: Kernel): Evidence {
  if (mg.evidence === null)
    throw refused("needs_postgres", `evidence needs PostgreSQL, and this server's store is ${mg.store.traits.name}`);
  return mg.evidence;
}

type Searched = Asked<"exportAudit">["query"];

function filterOf(query: Searched, { clock }: Kernel, max?: number) {
  const { since, until, cursor: after, ...rest } = limited(query, max);
  if (after !== undefined && !/^[0-9]{1,18}$/.test(after))
    throw refusalOf("invalid_query", "cursor", "must be a next_cursor or a position of this list");
  const at = (moment: string | undefined) => (moment === undefined ? undefined : (momentOf(moment, clock.wallMs()) ?? undefined));
  return { ...rest, since: at(since), until: at(until), after };
}

const shown = (one: StoredAudit, payload: boolean): string =>
  spliced(wireOf(auditRecord, one), "payload", payload ? one.payload : undefined);

type Reads = "listAudit" | "getAudit" | "exportAudit" | "listAuditHolds" | "holdAudit" | "releaseAuditHold" | "eraseAudit";

export const AUDIT: Handlers<"recordAudit" | Reads> = {
  /** 201 stored, 200 it was there, 202 queued (EV-15), 400 quarantined; 507 and 503: the producer keeps it. */
  async recordAudit(asked, kernel) {
    const { params, actor, named, body: text } = asked;
    const kind = auditKinds().find(({ type }) => type === params.type);
    const types = auditKinds().map(({ type }) => type);
    if (!kind) throw refused("not_found", `there is no such audit type; registered are ${types.join(", ")}`);
    keptIn(kernel);
    const from = { actor, occurredMs: kernel.clock.wallMs(), traceparent: traceparentOf(asked) };
    return answer(await acceptRecord(kernel.mg, kind.type, { text, newId, ...from, writer: named ? actor : undefined }));
  },
  async listAudit({ query: { payload = false, ...query } }, kernel) {
    const filter = filterOf(query, kernel, payload ? PAYLOAD_PAGE_MAX : undefined);
    const { records: data, next: nextCursor } = await keptIn(kernel).list(filter);
    return pageText({ data, nextCursor }, (one) => shown(one, payload));
  },
  async getAudit({ params: { id } }, kernel) {
    const found = await keptIn(kernel).get(id);
    if (!found) throw notFound("record", id);
    return jsonText(200, shown(found, true));
  },
  async exportAudit({ query }, kernel) {
    const evidence = evidenceOf(kernel);
    const { records, next } = await keptIn(kernel).list(filterOf(query, kernel, PAYLOAD_PAGE_MAX));
    const data: Proof[] = [];
    let block: Awaited<ReturnType<Evidence["blockWith"]>> = null;
    for (const { sequence, position } of records) {
      const within = block && BigInt(position ?? 0) < BigInt(block.firstPos) + BigInt(block.size);
      if (!within) block = await evidence.blockWith(position ?? "0");
      const proof = block && (await evidence.prove("audit", sequence, block));
      // In no block yet: it comes first of the next page, within a minute or so.
      if (proof === null || proof === "unsealed") return page({ data, nextCursor: null }, (one) => one);
      data.push(proof);
    }
    return page({ data, nextCursor: next }, (one) => one);
  },
  async listAuditHolds({ query }, kernel) {
    const { limit, active = false, cursor } = limited(query);
    if (cursor !== undefined && !/^[0-9]{1,18}$/.test(cursor))
      throw refusalOf("invalid_query", "cursor", "must be a next_cursor of this list");
    const data = await keptIn(kernel).holds({ active, limit, after: cursor });
    return page({ data, nextCursor: data.length === limit ? (data.at(-1)?.id ?? null) : null }, (one) => wireOf(auditHold, one));
  },
  async holdAudit({ body, actor }, kernel) {
    const { eventId, correlationId, reason } = body;
    if ((eventId === undefined) === (correlationId === undefined))
      throw refusalOf("invalid_request", "event_id", "or correlation_id: give one of the two");
    const target = eventId === undefined ? { correlationId: correlationId as string } : { eventId };
    const placed = await keptIn(kernel).hold(target, { actor, reason });
    if (!placed) throw notFound("record", eventId ?? "");
    return json(201, wireOf(auditHold, placed));
  },
  async releaseAuditHold({ params: { id }, body: { reason }, actor }, kernel) {
    const released = /^[0-9]{1,18}$/.test(id) ? await keptIn(kernel).release(id, { actor, reason }) : null;
    if (!released) throw notFound("hold", id);
    return json(200, wireOf(auditHold, released));
  },
  async eraseAudit({ params: { id }, body: { reason }, actor }, kernel) {
    if (!(await evidenceOf(kernel).erase({ eventId: id, actor, reason }))) throw notFound("record", id);
    return json(200, { erased: true });
  },
};

export const EVIDENCE: Handlers<"getEvidence" | "verifyEvidence" | "listEvidenceBlocks" | "proveRecord"> = {
  async getEvidence(_, kernel) {
    const evidence = evidenceOf(kernel);
    const height = await evidence.height();
    return json(200, { keys: evidence.keys.map(({ verifier }) => verifier), copied_to: evidence.outside?.place ?? null, height });
  },
  async verifyEvidence({ query: { cursor } }, kernel) {
    const { report, next } = await evidenceOf(kernel).verify(placeOf(cursor));
    return json(200, { ...report, next_cursor: next && [next.phase, next.source, next.after].join(".") });
  },
  async listEvidenceBlocks({ query }, kernel) {
    const { limit, cursor = "0" } = limited(query);
    if (!/^[0-9]{1,18}$/.test(cursor)) throw refusalOf("invalid_query", "cursor", "must be the height of a block");
    const data = await evidenceOf(kernel).blocks(cursor, limit);
    return page({ data, nextCursor: data.length === limit ? (data.at(-1)?.height ?? null) : null }, (one) => one);
  },
  async proveRecord({ query: { id, source = "audit" } }, kernel) {
    const named = source === "audit" ? ((await keptIn(kernel).get(id))?.sequence ?? null) : id;
    const proof = named && /^[0-9]{1,18}$/.test(named) ? await evidenceOf(kernel).prove(source as EvidenceName, named) : null;
    if (proof === null) throw notFound("record", id);
    if (proof === "unsealed")
      throw refused("not_sealed", `record ${id.slice(0, 250)} is in no block yet: the leader seals each minute, ask again`);
    return json(200, proof);
  },
};

function placeOf(cursor: string | undefined): VerifyPlace | undefined {
  if (cursor === undefined) return undefined;
  const [, phase, source, after] = /^(blocks|rows)\.([0-9])\.([0-9]{1,18})$/.exec(cursor) ?? [];
  if (after === undefined) throw refusalOf("invalid_query", "cursor", "must be a next_cursor of this address");
  return { phase: phase as VerifyPlace["phase"], source: Number(source), after };
}

const REMEDY = "keep it and send it again";

function answer({ is, eventId, id, survives, faults, quarantined, code }: AcceptedRecord): Reply {
  const event = { event_id: eventId, status: is };
  if (is === "stored") return json(201, event);
  if (is === "duplicate") return json(200, event);
  if (is === "queued") return json(202, { ...event, message_id: id, survives });
  if (is === "full") return problem("store_full", `the audit database is full and nothing else could take the record: ${REMEDY}`);
  if (is === "unavailable")
    return problem("store_unavailable", `neither the database nor the queue could take the record: ${REMEDY}`);
  if (is === "unfit") {
    const errors = faults.map(({ field, detail }) => ({ field, code: "invalid_payload" as const, detail }));
    const members = { quarantined, message_id: quarantined ? (id ?? null) : null };
    return problem("invalid_payload", `the record does not fit: ${faultText(faults)}`, { errors, members });
  }
  const members = { event_id: eventId, quarantined, message_id: id };
  if (is === "refused") return problem("invalid_payload", `the record is refused (${code})`, { members });
  const words = "is already there with another text: an event id names one record for ever";
  return problem("key_conflict", `event ${JSON.stringify(eventId)} ${words}`, { members });
}
