/**
 * What doctor says of PostgreSQL, each check once failing for real and once passing: a server with everything set wrong, transactions left
 * open, and schemas that differ from what the migrations make.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { heldBack } from "../../src/store/postgres/examine-settings.ts";
import { createConnection, createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { type OwnPostgres, ownPostgres } from "./own-postgres.ts";
import { type Doctored, doctor, failing, warning, well } from "./support.ts";

const SETTINGS = [
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "connections",
  "autovacuum",
  "idle transactions",
  "wal",
  "standbys",
];

describe("settings", () => {
  let wrong: OwnPostgres;
  let found: Doctored;

  beforeAll(async () => {
    wrong = await ownPostgres({
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      autovacuum: "off",
      max_connections: "12",
      wal_level: "minimal",
      max_wal_senders: "0",
      max_prepared_transactions: "2",
      idle_in_transaction_session_timeout: "0",
    });
    found = await doctor({ DATABASE_URL: wrong.url });
  }, 60_000);

  it("a server where every one of them is wrong is found out, one by one", () => {
    expect(found.code).toBe(1);
    for (const name of ["fsync", "synchronous_commit", "full_page_writes"])
      expect(found.of(name)).toMatchObject(failing(/^off: what was accepted/));
    expect(found.of("connections")).toMatchObject(warning(/too few for two processes: raise max_connections/));
    expect(found.of("autovacuum")).toMatchObject(warning(/^off/));
    expect(found.of("idle transactions")).toMatchObject(warning(/never ended/));
    expect(found.of("wal")).toMatchObject(warning(/^minimal/));
  });

  it("and on one where they are right all is well", async () => {
    const right = await doctor({ DATABASE_URL: databaseUrl() });
    expect(SETTINGS.map((name) => [name, right.of(name)?.status])).toEqual(SETTINGS.map((name) => [name, "ok"]));
  });

  it("a synchronous standby that is not there, an archive that fails, a slot that nobody reads", async () => {
    const behind = await ownPostgres({
      synchronous_standby_names: "elsewhere",
      synchronous_commit: "local",
      archive_mode: "on",
      archive_command: "false",
    });
    await behind.sql("select pg_create_physical_replication_slot('forgotten', true)");
    await behind.sql("select pg_switch_wal()");
    await expect
      .poll(async () => (await doctor({ DATABASE_URL: behind.url })).of("wal"))
      .toMatchObject(warning(/last attempt to archive failed/));
    const told = await doctor({ DATABASE_URL: behind.url });
    expect(told.of("standbys")).toMatchObject(failing(/no such standby follows/));
    expect(told.of("replication slots")).toMatchObject(warning(/nobody reads forgotten/));
    await behind.sql("select pg_drop_replication_slot('forgotten')");
    expect((await doctor({ DATABASE_URL: behind.url })).of("replication slots")).toMatchObject(well);
  }, 60_000);

  it("transactions that stay open, prepared ones among them", async () => {
    const open = new pg.Client({ connectionString: wrong.url, application_name: "forgetful" });
    const connection = createConnection({ url: wrong.url, poolMax: 1 });
    await open.connect();
    try {
      await open.query("begin; select 1");
      await wrong.sql("begin; create table left_behind (); prepare transaction 'halfway'");
      expect(await heldBack(connection, 0)).toMatchObject(
        warning(/of forgetful .*idle in transaction.*the prepared transaction 'halfway'/),
      );
      expect(await heldBack(connection)).toMatchObject(well);
      await open.query("commit");
      await wrong.sql("rollback prepared 'halfway'");
      expect(await heldBack(connection, 0)).toMatchObject(well);
    } finally {
      await open.end();
      await connection.close();
    }
  });
});

describe("the schema", () => {
  const schema = freshSchema();
  const env = () => ({ DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema });
  const sql = (text: string) => withClient((client) => client.query(text.replaceAll("S.", `"${schema}".`)));

  beforeAll(async () => {
    const store = createPostgresStore({ url: databaseUrl(), schema });
    await store.open();
    await store.close();
  });
  afterAll(() => dropSchema(schema));

  it("is what the migrations make, and nothing is left of the comparison", async () => {
    const told = await doctor(env());
    expect(["schema", "partitions", "drift", "indexes"].map((name) => told.of(name))).toMatchObject([well, well, well, well]);
    const { rows } = await withClient((client) =>
      client.query("select nspname from pg_namespace where nspname like 'makegood_compare%'"),
    );
    expect(rows).toEqual([]);
  });

  it("drift: a column that is gone", async () => {
    await sql("alter table S.topic rename column revision to old_revision");
    expect((await doctor(env())).of("drift")).toMatchObject(failing(/column topic\.revision is missing/));
    await sql("alter table S.topic rename column old_revision to revision");
    expect((await doctor(env())).of("drift")).toMatchObject(well);
  });

  it("drift: a trigger that is not ours may change what is written; an index that is missing makes it slow", async () => {
    await sql(`create function S.meddle() returns trigger language plpgsql as 'begin return null; end'`);
    await sql("create trigger meddling before insert on S.topic for each row execute function S.meddle()");
    expect((await doctor(env())).of("drift")).toMatchObject(warning(/trigger topic\.meddling is not ours/));
    await sql("drop function S.meddle() cascade");
    const [index] = await withClient(async (client) => {
      const { rows } = await client.query(
        `select c.relname, pg_get_indexdef(c.oid) as definition from pg_index i join pg_class c on c.oid = i.indexrelid
         where c.relnamespace = $1::regnamespace and c.relkind = 'i' and not c.relispartition and not i.indisunique order by 1 limit 1`,
        [schema],
      );
      return rows as { relname: string; definition: string }[];
    });
    await sql(`drop index S.${index?.relname}`);
    expect((await doctor(env())).of("drift")).toMatchObject(warning(new RegExp(`index ${index?.relname} is missing`)));
    await withClient((client) => client.query(index?.definition ?? ""));
    expect((await doctor(env())).of("drift")).toMatchObject(well);
  });

  it("an index that was left half made", async () => {
    await sql("create table S.twice as select 1 as one from generate_series(1, 2)");
    await expect(sql("create unique index concurrently half_made on S.twice (one)")).rejects.toThrow();
    expect((await doctor(env())).of("indexes")).toMatchObject(warning(/half_made/));
    await sql("drop table S.twice");
    expect((await doctor(env())).of("indexes")).toMatchObject(well);
  });

  it("no days ahead, a migration that is missing, one that was edited", async () => {
    const ahead = await withClient(async (client) => {
      const { rows } = await client.query(
        `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1 desc`,
        [`"${schema}".message`],
      );
      return rows.map(({ name }: { name: string }) => name);
    });
    await sql(
      ahead
        .slice(0, -1)
        .map((name) => `drop table ${name};`)
        .join(""),
    );
    expect((await doctor(env())).of("partitions")).toMatchObject(warning(/is a dispatcher running/));
    await sql("update S.migration set checksum = 'edited' where version = 3");
    expect((await doctor(env())).of("schema")).toMatchObject(failing(/edited after it ran/));
    await sql("delete from S.migration where version >= 3");
    expect((await doctor(env())).of("schema")).toMatchObject(warning(/misses \d+ migration/));
  });
});
