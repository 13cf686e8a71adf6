/**
 * The address of audit records: one record in, stored or queued durably, and said which.
 */
import { z } from "zod";
import { BODY_BYTES } from "./body-bytes.ts";
import { routes } from "./route.ts";

const said = z
  .looseObject({ event_id: z.string(), status: z.enum(["stored", "duplicate", "queued"]) })
  .meta({ id: "AuditAnswer" });

export const AUDIT_ROUTES = routes({
  recordAudit: {
    summary: "Record what was done: 201 stored, 200 it was there already, 202 queued durably",
    permission: "accept",
    body: {
      schema: z.looseObject({}).describe("a record of the type, whole or in the short form of the audit stream"),
      bytesMax: BODY_BYTES.audit,
      invalid: "invalid_payload",
      exact: true,
    },
    answers: { 200: said, 201: said, 202: said },
    errors: ["invalid_payload", "key_conflict", "store_full", "store_unavailable", "needs_postgres"],
  },
});
