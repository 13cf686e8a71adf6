/**
 * Whether our schema is what this release's migrations make: applied and unedited, with the same columns, indexes, constraints, triggers and
 * functions, no index half made, and days ahead. What it should be is made in a transaction that is rolled back, so that nothing has to
 * be written down twice.
 */
import { errorText } from "../../message/errors.ts";
import { systemClock } from "../../platform/clock.ts";
import { systemRandom } from "../../platform/random.ts";
import { type Examined, examined } from "../shared/examined.ts";
import type { Connection, Queryable } from "./connection.ts";
import { KERNEL_SET, makeIn, migrationStatus, OPTIONAL_SETS } from "./migrate.ts";
import { daysAhead } from "./partitions.ts";
import { quoteSchema } from "./schema-name.ts";

/** The first of them says whether the schema can be used. */
export async function examineSchema(connection: Connection, name: string): Promise<Examined[]> {
  try {
    const states = await migrationStatus(connection, name);
    const missing = states.filter(({ applied }) => !applied).length;
    const latest = states.filter(({ applied }) => applied).at(-1);
    const absent = `${name} is not there yet: serve or \`makegood migrate up\` makes it`;
    if (latest === undefined) return [examined("schema", false, absent, "warn")];
    if (missing > 0)
      return [examined("schema", false, `${name} misses ${missing} migration(s): run \`makegood migrate up\``, "warn")];
    const days = await daysAhead(connection, name, systemClock.wallMs());
    const ahead = `${days} days ahead${days >= 2 ? "" : ": is a dispatcher running?"}`;
    return [
      examined("schema", true, `${name} at ${latest.version}-${latest.name}`),
      examined("partitions", days >= 2, ahead, "warn"),
      await drift(connection, name),
      await indexes(connection, name),
    ];
  } catch (error) {
    return [examined("schema", false, errorText(error))];
  }
}

const NAMED_MAX = 5;

async function indexes(connection: Connection, name: string): Promise<Examined> {
  const text = `select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and not (i.indisvalid and i.indisready) order by 1`;
  const found = (await connection.rows("examine the schema", text, [name], { reads: true })).map(([index]) => index);
  const words = `not usable: ${found.slice(0, NAMED_MAX).join(", ")}: maintenance of a running server completes those of a day; others need \`reindex index\``;
  return examined("indexes", found.length === 0, found.length === 0 ? "all usable" : words, "warn");
}

/**
 * What there is, one line each: kind, where, and how it is defined. Partitions come and go with the days, so they and what they carry are
 * left out.
 */
const catalogSql = `with own as (select c.oid, c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and not c.relispartition)
  select 'column' as kind, relname || '.' || attname as what, format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end ||
      coalesce(' default ' || pg_get_expr(adbin, adrelid), '') as definition
    from own join pg_attribute on attrelid = own.oid left join pg_attrdef on adrelid = own.oid and adnum = attnum
    where relkind in ('r', 'p', 'v', 'm') and attnum > 0 and not attisdropped
  union all select 'index', relname, pg_get_indexdef(oid) from own where relkind in ('i', 'I')
  union all select 'constraint', relname || '.' || conname, pg_get_constraintdef(con.oid) from own join pg_constraint con on conrelid = own.oid
    where contype <> 'n'
  union all select 'trigger', relname || '.' || tgname, pg_get_triggerdef(t.oid) || ' ' || tgenabled::text from own join pg_trigger t on tgrelid = own.oid
    where not tgisinternal
  union all select 'function', p.oid::regprocedure::text, prosrc from pg_proc p join pg_namespace n on n.oid = pronamespace where n.nspname = $1`;

type Catalog = ReadonlyMap<string, string>;

/** `as`: the name to be read instead of the schema's own, which is in many a definition. */
async function catalogOf(client: Queryable, name: string, as = name): Promise<Catalog> {
  const { rows } = await client.query(catalogSql, [name]);
  const renamed = (text: string): string => text.replaceAll(name, as);
  const found = rows as readonly { readonly kind: string; readonly what: string; readonly definition: string }[];
  return new Map(found.map(({ kind, what, definition }) => [renamed(`${kind} ${what}`), renamed(definition)]));
}

/** What only slows it down when it is missing. */
const LESSER = /^index /;
/** Of what is there beyond ours only this can change what is written. */
const MEDDLING = /^(trigger|constraint) /;

async function drift(connection: Connection, name: string): Promise<Examined> {
  const sets = [KERNEL_SET, ...OPTIONAL_SETS.values()];
  let compared: { is: Catalog; should: Catalog } | undefined;
  try {
    await connection.transaction("compare the schema", async (client) => {
      const scratch = `makegood_compare_${Math.floor(systemRandom.next() * 1e9)}`;
      // Otherwise a definition leaves out the schema of what happens to be found without it.
      await client.query("set local search_path = pg_catalog");
      const is = await catalogOf(client, name);
      await client.query(`create schema ${quoteSchema(scratch)}`);
      for (const set of sets) if (is.has(`column ${set.ledger}.version`)) await makeIn(client, scratch, set);
      compared = { is, should: await catalogOf(client, scratch, name) };
      throw new Error("nothing of it is kept");
    });
  } catch (error) {
    if (compared === undefined) return examined("drift", false, `could not be compared: ${errorText(error)}`, "warn");
  }
  return told(compared as { is: Catalog; should: Catalog });
}

function told({ is, should }: { is: Catalog; should: Catalog }): Examined {
  const missing = [...should.keys()].filter((one) => !is.has(one));
  const changed = [...should].filter(([one, definition]) => is.has(one) && is.get(one) !== definition).map(([one]) => one);
  const added = [...is.keys()].filter((one) => !should.has(one) && MEDDLING.test(one));
  const words = [
    ...missing.map((one) => `${one} is missing`),
    ...changed.map((one) => `${one} is not as made`),
    ...added.map((one) => `${one} is not ours`),
  ];
  if (words.length === 0) return examined("drift", true, `none: ${should.size} things are as the migrations make them`);
  const more = words.length > NAMED_MAX ? `, and ${words.length - NAMED_MAX} more` : "";
  const harmful = [...missing, ...changed].some((one) => !LESSER.test(one));
  return examined(
    "drift",
    false,
    `${words.slice(0, NAMED_MAX).join("; ")}${more}: \`makegood migrate print\` says what should be`,
    harmful ? "fail" : "warn",
  );
}
