/** A store with evidence on a schema of its own, rows to seal, and a superuser's hand that no trigger stops. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { createEvidence, type Evidence } from "../../src/evidence/evidence.ts";
import { newKeyLine, parseKeys } from "../../src/evidence/notes.ts";
import { fileCopy } from "../../src/evidence/outside.ts";
import { emptyReport, joinReports, type Report } from "../../src/evidence/report.ts";
import type { VerifyPlace } from "../../src/evidence/verify.ts";
import { createEvents, type MakegoodEvent } from "../../src/observe/events.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { record } from "../audit/records.ts";
import { dropSchema, openStore, withClient } from "../support/postgres.ts";

export const newKeys = () => parseKeys(newKeyLine(systemRandom));

export async function openEvidence() {
  const store = await openStore();
  const { schema, home, audit } = store;
  const events = createEvents();
  const heard: MakegoodEvent[] = [];
  events.on((event) => void heard.push(event));
  const keys = newKeys();
  const copy = join(await mkdtemp(join(tmpdir(), "evidence-")), "copy.ndjson");
  const with_ = (more: object = {}): Evidence => createEvidence(home, events, { keys, outside: fileCopy(copy), ...more });
  let count = 0;
  return {
    ...{ store, schema, home, audit, heard, keys, copy, events, evidence: with_(), with: with_ },
    async write(n = 1): Promise<void> {
      for (let i = 0; i < n; i++) await audit.write(record(`e-${++count}`));
    },
    /** Many at once, past the seam: one statement, as a redrive writes provenance. */
    provenance: (n: number) =>
      withClient((client) =>
        client.query(
          `insert into "${schema}".provenance (message_id, actor, action, reason)
          select gen_random_uuid(), 'ann', 'replay', case when i % 2 = 0 then 'why ' || i end from generate_series(1, $1::int) i`,
          [n],
        ),
      ),
    /** As one who can do everything and wants no trace of it. */
    tamper: (sql: string) =>
      withClient(async (client: pg.Client) => {
        await client.query(`set session_replication_role = replica; set search_path = "${schema}"`);
        return (await client.query(sql)).rows as Record<string, unknown>[];
      }),
    async close() {
      await store.close();
      await dropSchema(schema);
    },
  };
}

/** Every part of a verification, as a command follows it. */
export async function verified(evidence: Evidence): Promise<Report> {
  const report = emptyReport();
  for (let place: VerifyPlace | undefined; ; ) {
    const part = await evidence.verify(place);
    joinReports(report, part.report);
    if (part.next === null) return report;
    place = part.next;
  }
}

export const kinds = ({ findings }: Report) => [...new Set(findings.map(({ kind }) => kind))].sort();
