/**
 * Our own statement on the driver's connections: it writes parameters as the driver does, and what goes wrong with one statement is that
 * statement's alone.
 */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Connection, createConnection } from "../../src/store/postgres/connection.ts";
import { queryText, TextQuery } from "../../src/store/postgres/text-query.ts";
import { databaseUrl, withClient } from "../support/postgres.ts";

let connection: Connection;

beforeAll(async () => {
  connection = createConnection({ url: databaseUrl(), poolMax: 1 });
  await connection.open();
});

afterAll(() => connection.close());

const NASTY = ["", " ", "NULL", "null", "a,b", "{}", '"', "\\", '\\"', "it's", "\n\t", "ä €\u{1f600}", "\u001e"];

it.each([
  ["text[]", NASTY],
  ["text[]", [...NASTY, null]],
  ["int[]", [1, -2, null]],
  ["text[]", []],
  [
    "text[]",
    [
      ["a", "b"],
      ["c", null],
    ],
  ],
  ["text", "ä €"],
  ["text", null],
  ["text", undefined],
  ["int", 42],
  ["float8", 1.5e-7],
  ["boolean", true],
  ["json", { a: [1, "x"] }],
  ["timestamptz", new Date("2026-03-01T12:34:56.789Z")],
])("a parameter of %s arrives as the driver's own does: %j", async (type, value) => {
  const text = `select ($1::${type})::text`;
  const { rows } = await withClient((client) => client.query({ text, values: [value], rowMode: "array" }));
  expect(await connection.rows("ask", text, [value])).toEqual(rows);
});

it("a prepared statement that fails is as good as before the next time", async () => {
  const ask = (by: number) => connection.rows("divide", "select (6 / $1::int)::text", [by], { name: "divide" });
  expect(await ask(2)).toEqual([["3"]]);
  await expect(ask(0)).rejects.toMatchObject({ code: "22012" });
  expect(await ask(3)).toEqual([["2"]]);
});

it("one that cannot be prepared is not taken for prepared", async () => {
  await withClient(async (client) => {
    const wrong = () => queryText(client, new TextQuery("select nothing from nowhere", [], "wrong"));
    await expect(wrong()).rejects.toMatchObject({ code: "42P01" });
    await expect(wrong()).rejects.toMatchObject({ code: "42P01" });
    expect(await queryText(client, new TextQuery("select $1::text", ["x"], "right"))).toEqual([["x"]]);
  });
});

it("a client that is watched, and sends a copy of the query with a comment: the same rows", async () => {
  await withClient(async (client) => {
    const watched = { query: (query: TextQuery) => client.query({ ...query, text: `${query.text} /* watched */` } as never) };
    const ask = new TextQuery("select $1::text as a, null::text as b", ["x"], "watched");
    expect(await queryText(watched, ask)).toEqual([["x", null]]);
  });
});

it("several statements without parameters, and one without rows", async () => {
  expect(await connection.rows("ask", "create temp table t (a int); insert into t values (1), (2)", [])).toEqual([]);
  expect(await connection.rows("ask", "insert into t values ($1)", [3])).toEqual([]);
  expect(await connection.rows("ask", "select a::text from t order by a", [])).toEqual([["1"], ["2"], ["3"]]);
});

it("a limit of its own ends it, and the next one has a new connection", async () => {
  const slow = connection.rows("sleep", "select pg_sleep(60)::text", [], { reads: true, patienceMs: 50 });
  await expect(slow).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await connection.rows("ask", "select 'here'", [])).toEqual([["here"]]);
});

it("a connection that breaks fails what is under way on it", async () => {
  const client = new pg.Client({ connectionString: databaseUrl() });
  await client.connect();
  client.on("error", () => {});
  const pid = (client as unknown as { processID: number }).processID;
  const slow = queryText(client, new TextQuery("select pg_sleep($1)::text", [60]));
  const ended = expect(slow).rejects.toThrow();
  await withClient((killer) => killer.query("select pg_terminate_backend($1)", [pid]));
  await ended;
  await expect(queryText(client, new TextQuery("select 1", []))).rejects.toThrow();
});
