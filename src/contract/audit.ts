/**
 * The address of audit records: one record in, stored or queued durably, and said which.
 */
import { z } from "zod";
import { exactBody } from "./bodies.ts";
import { route, routes } from "./route.ts";

const said = z
  .looseObject({ event_id: z.string(), status: z.enum(["stored", "duplicate", "queued"]) })
  .meta({ id: "AuditAnswer" });
const record = z.looseObject({}).describe("a record of the type, whole or in the short form of the audit stream");
const summary = "Record what was done: 201 stored, 200 it was there already, 202 queued durably";

export const AUDIT_ROUTES = routes({
  recordAudit: route(
    "accept",
    summary,
    { 200: said, 201: said, 202: said },
    {
      body: exactBody("audit", record),
      errors: ["not_found", "key_conflict", "store_full", "needs_postgres"],
    },
  ),
});
