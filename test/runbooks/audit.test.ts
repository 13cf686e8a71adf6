/**
 * AUD-35: the pages of the four audit alerts, followed by a shell on one server: each fault comes first and its alert fires by the shipped rule,
 * the page's commands are run as they stand, and the alert is silent again.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { envelope } from "../audit/records.ts";
import { removeWorkspaces, workspace } from "../cli/support.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { checkFiring } from "./alert-history.ts";
import { follow, followed, type Printed } from "./runbook.ts";
import { type Daemon, shownAs, startDaemon, systemctl } from "./scene.ts";

const TOPIC = "audit/executions";
const schema = freshSchema();
let makegood: Daemon;
let cwd: string;
let made = 0;

beforeAll(async () => {
  cwd = await workspace();
  makegood = await startDaemon(cwd, { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_RECOVERY: "off" });
});
afterAll(async () => {
  await makegood.service.stop();
  await dropSchema(schema);
  await removeWorkspaces();
});

/** The audit table answers every insert with this SQLSTATE; null: it is well again. */
const refuses = (state: string | null) =>
  withClient(async (client) => {
    const on = `on "${schema}".audit_event`;
    await client.query(`drop trigger if exists refuses ${on}`);
    if (state === null) return;
    await client.query(
      `create or replace function "${schema}".refuses() returns trigger language plpgsql as $$ begin raise exception 'no' using errcode = '${state}'; end $$`,
    );
    await client.query(`create trigger refuses before insert ${on} for each statement execute function "${schema}".refuses()`);
  });

/** Records that the queue has, however it came by them. */
async function queue(upTo: number, have: number): Promise<void> {
  const { mg } = makegood.server();
  for (let left = upTo - have; left > 0; left -= 500) {
    const some = Array.from({ length: Math.min(500, left) }, () => JSON.stringify(envelope(`queued-${++made}`)));
    await mg.enqueueText(some.map((payloadText) => ({ topic: TOPIC, payloadText })));
  }
}

const scene = () => ({
  cwd,
  env: { MAKEGOOD_URL: makegood.url },
  programs: { systemctl: systemctl({ postgresql: { start: () => refuses(null) } }) },
});

const follows = (alert: string, metric: RegExp, above: number, inject: () => Promise<unknown>): Promise<Printed> =>
  follow(`alerts/${alert}`, alert, {
    ...scene(),
    scrape: makegood.scrape,
    inject: async () => void (await inject()),
    until: (scrape, there) => (shownAs(scrape, metric) ?? 0) > above === there,
  });

it("AuditPermanentFailures: what refused the record is taken away, and a replay stores it", async () => {
  const printed = await follows("AuditPermanentFailures", /^makegood_audit_dead_letters /, 0, async () => {
    await refuses("23514");
    await queue(2, 0);
    await expect.poll(async () => shownAs(await makegood.scrape(), /^makegood_audit_dead_letters /)).toBe(2);
    await refuses(null);
  });
  expect(printed.Look).toContain("sql_23514");
  expect(printed["Over when"]).toBe("");
}, 60_000);

it("AuditWriteFailureSpike: the page tells fallback from a mistake, and the database is brought back", async () => {
  const post = () => makegood.send("POST", `/api/v1/${TOPIC}`, envelope(`spike-${++made}`));
  const failures = /^makegood_audit_write_failures_total\{audit_type="executions"\}/;
  // Not the first write of the process: what a counter begins with is no increase.
  expect((await post()).status).toBe(201);
  const before = await makegood.scrape();
  await refuses("53100");
  const answers = await Promise.all(Array.from({ length: 110 }, post));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  const during = await makegood.scrape();
  expect(shownAs(during, failures)).toBe(110);
  const printed = await followed("alerts/AuditWriteFailureSpike", scene());
  // The breaker of the type closes when a probe was stored.
  await expect.poll(async () => (await post()).status, { interval: 500 }).toBe(201);
  await checkFiring("AuditWriteFailureSpike", [before, during, await makegood.scrape()], [false, true, false]);
  expect(printed.Look).toMatch(/audit_type="executions",result="fallback"\} 110/);
}, 60_000);

it("AuditDLQHigh: a topic that was paused is resumed", async () => {
  const printed = await follows("AuditDLQHigh", /^makegood_audit_pending /, 5_000, async () => {
    expect((await makegood.send("POST", `/api/v1/topics/${TOPIC}/pause`, {})).status).toBe(200);
    await queue(5_005, shownAs(await makegood.scrape(), /^makegood_audit_pending /) ?? 0);
  });
  expect(printed.Look).toContain("paused");
}, 60_000);

it("AuditDLQCritical: the audit database is full, gets room again, and records are stored", async () => {
  const printed = await follows("AuditDLQCritical", /^makegood_audit_pending /, 9_000, async () => {
    await refuses("53100");
    await queue(9_005, shownAs(await makegood.scrape(), /^makegood_audit_pending /) ?? 0);
    await expect.poll(() => makegood.lines.some((line) => line.includes("no space left"))).toBe(true);
  });
  expect(printed.Look).toMatch(/no space left|store_full/);
}, 60_000);
