/**
 * The documents in PostgreSQL: compare-and-set under the row of their kind, which also counts the writes. Versions stand in a table that
 * only grows; templates, which are many and made by programs, keep none.
 */
import type { DocumentKind, DocumentStore, DocumentWrite, StoredDocument } from "./documents.ts";
import type { At } from "../store/store.ts";
import { clockSql } from "../store/shared/clock-sql.ts";
import type { Row } from "../store/postgres/connection.ts";
import { fromEpoch } from "../store/postgres/statements/view.ts";
import { record } from "./provenance-sql.ts";
import { epoch } from "./rows.ts";
import { inTransaction, type RecoveryDb, type Run, reader } from "../store/postgres/home.ts";

type Put = { readonly kind: "done" | "version_conflict"; readonly version: number };

const COLUMNS = `d.id, d.version::text, coalesce(d.text, ''), d.actor, ${epoch("d.at")}`;

const documentOf = ([id, version, text, actor, at]: Row): StoredDocument => ({
  id: id as string,
  version: Number(version),
  text: text as string,
  actor: actor as string,
  at: fromEpoch(at) as Date,
});

/** Writers of one kind come one after the other. */
async function lockKind(s: string, run: Run, kind: DocumentKind): Promise<void> {
  const text = `select 1 from ${s}.recovery_document_kind where kind = $1 for no key update`;
  if ((await run(text, [kind])).length > 0) return;
  await run(`insert into ${s}.recovery_document_kind (kind, revision) values ($1, 0) on conflict do nothing`, [kind]);
  await run(text, [kind]);
}

export async function putDocument(s: string, run: Run, write: DocumentWrite, { now }: At): Promise<Put> {
  const { kind, id, text, actor } = write;
  await lockKind(s, run, kind);
  const found = await run(`select version::text, (text is null)::text from ${s}.recovery_document where kind = $1 and id = $2`, [
    kind,
    id,
  ]);
  const [last, deleted] = found[0] ?? ["0", "true"];
  const version = deleted === "true" ? 0 : Number(last);
  if (write.version !== version) return { kind: "version_conflict", version };
  if (text === null && version === 0) return { kind: "done", version };
  const next = Number(last) + 1;
  const clock = clockSql(now);
  await run(
    `with d as (insert into ${s}.recovery_document (kind, id, version, text, actor, at) values ($1, $2, $3::int, $4, $5, ${clock})
        on conflict (kind, id) do update set version = excluded.version, text = excluded.text, actor = excluded.actor, at = excluded.at),
      v as (insert into ${s}.recovery_document_version (kind, id, version, text, actor, at)
        select $1, $2, $3::int, coalesce($4, ''), $5, ${clock} where $1 <> 'templates')
      update ${s}.recovery_document_kind set revision = revision + 1 where kind = $1`,
    [kind, id, next, text, actor],
  );
  await record(s, run, write.provenance ?? [], { now });
  return { kind: "done", version: next };
}

export function createDocuments(db: RecoveryDb): DocumentStore {
  const { s } = db;
  const run = reader(db, "read documents");
  return {
    async get(kind, id) {
      const text = `select ${COLUMNS} from ${s}.recovery_document d where d.kind = $1 and d.id = $2 and d.text is not null`;
      const [row] = await run(text, [kind, id]);
      return row ? documentOf(row) : null;
    },
    async list(kind) {
      const text = `select ${COLUMNS} from ${s}.recovery_document d where d.kind = $1 and d.text is not null order by d.id`;
      return (await run(text, [kind])).map(documentOf);
    },
    async revision(kind) {
      const [row] = await run(`select revision::text from ${s}.recovery_document_kind where kind = $1`, [kind]);
      return Number(row?.[0] ?? 0);
    },
    put: (write, at = {}) => inTransaction(db, "write a document", ({ run: inside }) => putDocument(s, inside, write, at)),
    async history(kind, id, limit) {
      const text = `select ${COLUMNS} from ${s}.recovery_document_version d where d.kind = $1 and d.id = $2 order by d.version desc limit $3::int`;
      return (await run(text, [kind, id, limit])).map(documentOf);
    },
  };
}
