/**
 * EV-24, EV-25: audit records and evidence over HTTP and on the command line, with tokens, on PostgreSQL: read, searched, held, erased, exported
 * with proofs that another machine checks, and never written under another name than the token's.
 */
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Io } from "../../src/cli/io.ts";
import { runProgram } from "../../src/cli/program.ts";
import { registerAuditType } from "../../src/presets/audit/registry.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { envelope } from "../audit/records.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { startTestServer, type TestServer } from "./support.ts";

const SECRETS = { ann: "ann-has-a-long-secret", billing: "billing-has-a-long-secret" };
const schema = freshSchema();
let server: TestServer;
let folder: string;
let copy: string;

beforeAll(async () => {
  registerAuditType({ type: "payments", producer: "billing", data: { amount: "number", currency: "text" } });
  folder = await mkdtemp(join(tmpdir(), "evidence-"));
  copy = join(folder, "copy.ndjson");
  const env = {
    MAKEGOOD_TOKENS: Object.entries(SECRETS)
      .map(([name, secret]) => `${name}:${secret}`)
      .join(","),
    MAKEGOOD_EVIDENCE_KEY_FILE: join(folder, "key"),
    MAKEGOOD_EVIDENCE_COPY: copy,
  };
  server = await startTestServer(env, { store: createPostgresStore({ url: databaseUrl(), schema }) });
});
afterAll(async () => {
  await server.close();
  await dropSchema(schema);
});

const as = (name: keyof typeof SECRETS) => ({ authorization: `Bearer ${SECRETS[name]}` });
const get = (path: string) => server.api(path, { headers: as("ann") });
const data = async (path: string) => ((await (await get(path)).json()) as { data: Record<string, unknown>[] }).data;
const post = (type: string, record: unknown, name: keyof typeof SECRETS = "billing") =>
  server.send("POST", `/api/v1/audit/${type}`, record, as(name));

async function makegood(args: readonly string[], env: Record<string, string> = {}) {
  const [out, err]: [string[], string[]] = [[], []];
  const io: Io = {
    ...{ env, cwd: folder, tty: false, color: false, width: null },
    ...{ out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) },
    ...{ stdin: async () => null, ask: async () => null },
  };
  const code = await runProgram(io, args);
  return { code, out: out.join(""), err: err.join("") };
}
const asked = (...args: string[]) => makegood(args, { MAKEGOOD_URL: server.url, MAKEGOOD_TOKEN: SECRETS.ann });

describe("EV-25: who wrote a record", () => {
  it("is the token's name; what the producer claims stays in the text, byte for byte", async () => {
    const text = JSON.stringify(envelope("claimed", "executions", { actor: "the president", n: 1 })).replace('"n":1', '"n":1.10');
    expect((await post("executions", text)).status).toBe(201);
    const found = await get("/api/v1/audit/records/claimed");
    const body = await found.text();
    expect(body).toContain(`"payload":${text}`);
    expect(JSON.parse(body)).toMatchObject({ actor: "billing", payload: { actor: "the president" } });
  });

  it("also of a record that waited in the queue, and of one that came as a message under another tenant", async () => {
    const payload = envelope("as-message", "executions", { actor: "root" });
    const sent = await server.send(
      "POST",
      "/api/v1/messages",
      { topic: "audit/executions", key: "as-message", tenant_id: "root", payload },
      as("billing"),
    );
    expect(sent.status).toBe(201);
    await vi.waitFor(async () => expect((await get("/api/v1/audit/records/as-message")).status).toBe(200), 15_000);
    expect(await (await get("/api/v1/audit/records/as-message")).json()).toMatchObject({ actor: "billing" });
  });
});

describe("EV-24: reading audit", () => {
  it("is listed, searched and read on from a position; a cursor that is none is refused", async () => {
    for (const [i, outcome] of ["success", "failure", "success"].entries())
      await post("executions", envelope(`list-${i}`, "executions", { correlation_id: "order-9", outcome, resource: `pod/${i}` }));
    const all = await data("/api/v1/audit?correlation_id=order-9");
    expect(all.map(({ event_id }) => event_id)).toEqual(["list-0", "list-1", "list-2"]);
    expect(all[0]).not.toHaveProperty("payload");
    expect((await data(`/api/v1/audit?correlation_id=order-9&cursor=${all[0]?.position}`)).length).toBe(2);
    expect((await data("/api/v1/audit?outcome=failure&resource=pod/1&payload=true"))[0]).toHaveProperty(
      "payload.outcome",
      "failure",
    );
    expect(await data("/api/v1/audit?actor=nobody")).toEqual([]);
    expect(await data("/api/v1/audit?since=2030-01-01")).toEqual([]);
    expect((await get("/api/v1/audit?cursor=x")).status).toBe(400);
    expect((await get("/api/v1/audit/records/nobody")).status).toBe(404);
    const { code, out } = await asked("audit", "list", "--correlation", "order-9", "--outcome", "failure");
    expect([code, out]).toEqual([0, expect.stringContaining("list-1")]);
  });

  it("types of the user's own have a schema, and an unknown one is refused with the list", async () => {
    const paid = (amount: unknown) => envelope(`paid-${amount}`, "executions", { data: { amount, currency: "EUR" } });
    expect((await post("payments", paid(5))).status).toBe(201);
    const wrong = await post("payments", paid("five"));
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("data.amount")]);
    const unknown = await post("payment", paid(5));
    expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining("effectiveness, payments")]);
    expect((await data("/api/v1/audit?audit_type=payments")).length).toBe(1);
    expect(() => registerAuditType({ type: "executions" })).toThrow(/shipped/);
    expect(() => registerAuditType({ type: "holds" })).toThrow(/taken/);
    expect(() => registerAuditType({ type: "Not this" })).toThrow(/lower-case/);
  });

  it("a hold keeps a record from being erased, by name and with a reason; erased, its place stays proven", async () => {
    await post("executions", envelope("personal"));
    const placed = await asked("audit", "hold", "--event", "personal", "--reason", "case 7", "--json");
    const hold = JSON.parse(placed.out) as { id: string };
    expect(hold).toMatchObject({ event_id: "personal", placed_by: "ann", reason: "case 7", released_at: null });
    const refused = await asked("audit", "erase", "personal", "--reason", "asked for", "--yes");
    expect([refused.code, refused.err]).toEqual([4, expect.stringContaining("hold")]);
    expect((await asked("audit", "release", hold.id, "--reason", "closed")).code).toBe(0);
    expect((await asked("audit", "release", hold.id, "--reason", "closed")).code).toBe(3);
    expect((await asked("audit", "erase", "personal", "--reason", "asked for")).code).toBe(2);
    expect((await asked("audit", "erase", "personal", "--reason", "asked for", "--yes")).code).toBe(0);
    expect((await get("/api/v1/audit/records/personal")).status).toBe(404);
    expect((await post("executions", envelope("personal"))).status).toBe(200);
    const report = JSON.parse((await asked("evidence", "verify", "--json")).out) as Record<string, unknown>;
    expect(report).toMatchObject({ whole: true, erased: 1, broken: 0 });
  });
});

describe("EV-24: evidence by commands", () => {
  it("an export is checked line by line without the store, and by the key that signed", async () => {
    await server.mg.evidence?.seal();
    const { code, out } = await asked("audit", "export", "--correlation", "order-9");
    expect([code, out.trim().split("\n").length]).toEqual([0, 3]);
    const file = join(folder, "export.ndjson");
    await writeFile(file, out);
    const { keys } = (await (await get("/api/v1/evidence")).json()) as { keys: string[] };
    expect((await makegood(["evidence", "check", file, "--key", keys[0]!])).code).toBe(0);
    expect((await makegood(["evidence", "check", file])).out).toContain("no key is trusted");
    await writeFile(file, out.replace("failure", "success"));
    const changed = await makegood(["evidence", "check", file, "--key", keys[0]!, "--json"]);
    expect([changed.code, JSON.parse(changed.out)]).toMatchObject([1, { checked: 3, wrong: 1 }]);
    const other = join(folder, "other-key");
    await makegood(["evidence", "keygen", other]);
    await writeFile(file, out);
    expect((await makegood(["evidence", "check", file], { MAKEGOOD_EVIDENCE_KEY_FILE: other })).code).toBe(1);
  });

  it("one record is proven by its event id; what is not sealed yet says so", async () => {
    const proof = join(folder, "proof.json");
    await writeFile(proof, (await asked("evidence", "prove", "list-1")).out);
    expect((await makegood(["evidence", "check", proof], { MAKEGOOD_EVIDENCE_KEY_FILE: join(folder, "key") })).code).toBe(0);
    await post("executions", envelope("fresh"));
    expect((await get("/api/v1/evidence/proof?id=fresh")).status).toBe(409);
    expect((await asked("evidence", "prove", "nobody")).code).toBe(3);
  });

  it("verify compares with a copy that was kept elsewhere, and its exit code says what was found", async () => {
    await server.mg.evidence?.seal();
    await post("executions", envelope("in-the-last-block"));
    await server.mg.evidence?.seal();
    const intact = await asked("evidence", "verify", "--against", copy, "--json");
    expect([intact.code, JSON.parse(intact.out)]).toMatchObject([0, { whole: true, findings: [] }]);
    expect((JSON.parse(intact.out) as { compared: number }).compared).toBeGreaterThan(0);
    const kept = join(folder, "kept.ndjson");
    await writeFile(kept, await readFile(copy));
    await withClient(async (client) => {
      await client.query(`set session_replication_role = replica`);
      await client.query(`update "${schema}".audit_record set outcome = 'fine' where event_id = 'list-1'`);
      await client.query(
        `delete from "${schema}".evidence_block where height = (select max(height) from "${schema}".evidence_block)`,
      );
    });
    await writeFile(copy, "");
    const broken = await asked("evidence", "verify", "--against", kept);
    expect(broken.code).toBe(1);
    expect(broken.out).toMatch(/row_changed/);
    expect(broken.out).toMatch(/tail_cut/);
  });

  it("a key file grows: the new key signs first, the one before it beside it, older ones only verify", async () => {
    const file = join(folder, "rotated");
    for (let i = 0; i < 3; i++) await makegood(["evidence", "keygen", file]);
    const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.map((line) => line.startsWith("PRIVATE+KEY+"))).toEqual([true, true, false]);
  });
});
