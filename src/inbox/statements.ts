/**
 * The inbox's table and every statement on it. Text parameters only: they pass through every driver and ORM unchanged.
 */

export interface InboxStatements {
  /** Makes the table where it is missing; safe by two at once, and takes no lock on a table that is there. */
  readonly create: string;
  /** scope, key, hash. One row: the key is new, and ours until the transaction ends; a second transaction waits here. */
  readonly insert: string;
  /** scope, key. */
  readonly read: string;
  /** scope, key, result. */
  readonly keep: string;
  /** scope, key. */
  readonly remove: string;
  /** age in ms, limit. */
  readonly prune: string;
}

/** `schema` and `table` are plain names, checked before. */
export function inboxStatements(schema: string, table: string): InboxStatements {
  const t = `"${schema}"."${table}"`;
  const one = "where scope = $1::text and key = $2::text";
  return {
    create: `do $makegood$
begin
  perform pg_advisory_xact_lock(hashtext('makegood.inbox'));
  if to_regnamespace('"${schema}"') is null then
    create schema "${schema}";
  end if;
  if to_regclass('${t}') is null then
    create table ${t} (
      scope text collate "C" not null,
      key text collate "C" not null,
      at timestamptz not null default now(),
      hash text,
      result text,
      primary key (scope, key)
    ) with (fillfactor = 90);
    create index "${table}_at" on ${t} (at);
  end if;
end
$makegood$`,
    insert: `insert into ${t} (scope, key, hash) values ($1::text, $2::text, $3::text) on conflict do nothing returning key as a`,
    read: `select hash as a, result as b from ${t} ${one}`,
    keep: `update ${t} set result = $3::text ${one}`,
    remove: `delete from ${t} ${one}`,
    prune: `with gone as (
      delete from ${t} where ctid = any (array(
        select ctid from ${t} where at < now() - $1::text::float8 * interval '1 ms'
        order by at limit $2::text::int for update skip locked))
      returning key)
    select count(*)::text as a from gone`,
  };
}
