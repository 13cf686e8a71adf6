/**
 * The receiver's inbox in the receiver's transaction, with the real libraries.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInbox } from "../../src/inbox/index.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { KINDS } from "./libraries/kinds.ts";
import type { Library, LibraryKind } from "./support/library.ts";
import { KEYS } from "./support/payloads.ts";

function judgeInbox(kind: LibraryKind): void {
  const schema = freshSchema();
  const inbox = createInbox({ schema });
  let library: Library;

  beforeAll(async () => {
    await withClient(async (client) => {
      await inbox.migrate(client);
      await client.query(`create table "${schema}".business (note text primary key)`);
    });
    library = await kind.open(databaseUrl(), schema);
  });
  afterAll(async () => {
    await library.close();
    await dropSchema(schema);
  });

  const written = async (): Promise<string[]> => {
    const { rows } = await withClient((client) => client.query(`select note from "${schema}".business order by note`));
    return rows.map(({ note }: { note: string }) => note);
  };

  /** A second effect of one key would break the primary key of the business table. */
  const deliver = (key: string, note = key) =>
    library.transaction(({ tx, write }) =>
      inbox.once(tx, key, async () => {
        await write(note);
        return { note };
      }),
    );

  it("is migrated in a transaction of the library's, too", async () => {
    await library.transaction(({ tx }) => createInbox({ schema, table: "another" }).migrate(tx));
    await library.transaction(({ tx }) => inbox.migrate(tx));
  });

  it("runs once, and gives repeats the kept result, whatever the key is made of", async () => {
    for (const key of KEYS) {
      expect(await deliver(key)).toEqual({ first: true, result: { note: key } });
      expect(await deliver(key)).toEqual({ first: false, result: { note: key } });
    }
    expect(await written()).toEqual(expect.arrayContaining([...KEYS]));
  });

  it("ten at once are one effect", async () => {
    const results = await Promise.all(Array.from({ length: 10 }, () => deliver("rush")));
    expect(results.filter(({ first }) => first)).toHaveLength(1);
    expect(results.map(({ result }) => result)).toEqual(Array(10).fill({ note: "rush" }));
  });

  it("a rollback takes the key with it", async () => {
    const undone = library.transaction(async ({ tx, write }) => {
      await inbox.once(tx, "undone", async () => void (await write("undone")));
      throw new Error("the business said no");
    });
    await expect(undone).rejects.toThrow("the business said no");
    expect(await written()).not.toContain("undone");
    expect(await deliver("undone")).toMatchObject({ first: true });
  });

  it("an effect that throws leaves the key free, also where the transaction is committed", async () => {
    await library.transaction(async ({ tx }) => {
      const failing = inbox.once(tx, "caught", () => Promise.reject(new Error("no stock")));
      await expect(failing).rejects.toThrow("no stock");
    });
    expect(await deliver("caught")).toMatchObject({ first: true });
  });

  it("the same key with another payload is refused, and the transaction goes on", async () => {
    const give = (payload: string) => library.transaction(({ tx }) => inbox.once(tx, "payload", () => 1, { payload }));
    expect(await give("a")).toEqual({ first: true, result: 1 });
    await library.transaction(async ({ tx, write }) => {
      await expect(inbox.once(tx, "payload", () => 2, { payload: "b" })).rejects.toMatchObject({ code: "key_conflict" });
      await write("after the conflict");
    });
    expect(await give("a")).toEqual({ first: false, result: 1 });
    expect(await written()).toContain("after the conflict");
  });

  it("prunes", async () => {
    await deliver("to be pruned");
    const pruned = await library.transaction(({ tx }) => inbox.prune(tx, { olderThanMs: 0, limit: 10_000 }));
    expect(pruned).toEqual({ pruned: expect.any(Number), more: false });
    expect(pruned.pruned).toBeGreaterThan(0);
    expect(await deliver("to be pruned", "a second effect")).toMatchObject({ first: true });
  });

  async function conflictInASnapshot(): Promise<void> {
    const undone = library.transaction(async ({ tx }) => {
      await tx.query("set transaction isolation level repeatable read");
      await tx.query("select 1 as a");
      await deliver("after the snapshot");
      await inbox.once(tx, "after the snapshot", () => expect.fail("it ran"));
    });
    await expect(undone).rejects.toMatchObject({ name: "MakegoodError", code: "retry_transaction", retryable: true });
  }
  if (!kind.nested) it("a conflict that undoes the transaction is told as retry_transaction", conflictInASnapshot);

  it("what is no transaction is refused, and nothing runs", async () => {
    for (const tx of Object.values(library.mistakes)) {
      const refused = inbox.once(tx, "not in a transaction", () => expect.fail("it ran"));
      await expect(refused).rejects.toMatchObject({ name: "MakegoodError", code: "not_a_transaction" });
    }
    expect(await deliver("not in a transaction")).toMatchObject({ first: true });
  });
}

describe.each(KINDS.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => judgeInbox(kind));
