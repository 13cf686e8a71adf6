/**
 * One chunk of an archive: records that leave, written in the transaction in which they are deleted, so that each is in the archive or in its
 * table and never in both or in neither. Its checksum is over the text, its chain over all chunks of its class.
 */

/** How much text one chunk may have; a record that alone is larger is a chunk of its own. */
export const CHUNK_BYTES_MAX = 16 * 1_048_576;
export const CHUNK_ROWS_MAX = 1_000;

/** Where the text of a chunk stands that only says how many went, and which. */
export const NOWHERE = "nowhere";
export const HERE = "table";

/** Chunks of a class are made one after the other: each continues the chain of the one before. */
export const chainLockSql = "select pg_advisory_xact_lock(hashtextextended($1, 1))";
export const chainLock = (s: string, name: string): string => `makegood archive ${s} ${name}`;

/**
 * $1 class, $2 whether the text is kept. `lines`: a select of `sort` (what orders them), `id`, `at` and `line`, a JSON object as text. Answers
 * with the chunk's id, its rows and its bytes; with nothing where there are no lines.
 */
export const chunkSql = (s: string, lines: string): string => `with x as materialized (${lines}),
  c as materialized (select count(*)::int as n, string_agg(x.line, E'\\n' order by x.sort) || E'\\n' as body, min(x.at) as first_at, max(x.at) as last_at,
    (array_agg(x.id order by x.sort))[1] as first_id, (array_agg(x.id order by x.sort desc))[1] as last_id from x),
  h as materialized (select c.*, encode(sha256(convert_to(c.body, 'UTF8')), 'hex') as sha256 from c where c.n > 0),
  p as materialized (select coalesce((select k.chain from ${s}.archive_chunk k where k.class = $1 order by k.id desc limit 1), '') as chain)
  insert into ${s}.archive_chunk (class, rows, bytes, first_id, last_id, first_at, last_at, sha256, chain, place, body)
    select $1, h.n, octet_length(h.body), h.first_id, h.last_id, h.first_at, h.last_at, h.sha256,
      encode(sha256(convert_to(p.chain || h.sha256, 'UTF8')), 'hex'), case when $2::boolean then '${HERE}' else '${NOWHERE}' end,
      case when $2::boolean then h.body end
    from h cross join p
  returning id::text, rows::text, bytes::text`;
