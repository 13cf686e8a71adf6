/**
 * What people and the engine decide once and read often (rules, group rules, the catalogue, templates): JSON texts under a version, written by
 * compare-and-set under the row of their kind, so that two editors never overwrite each other. Versions stand in a table that only grows.
 */
import type { Home, Row, Run } from "../store/home.ts";
import { clockSql, epoch, fromEpoch } from "../store/shared/clock-sql.ts";
import type { At } from "../store/store.ts";
import type { NewProvenance } from "./provenance.ts";
import { record } from "./provenance-sql.ts";

/** Rules, group rules, catalogue entries, templates: JSON texts under a version, written by compare-and-set; every version is kept. */
export type DocumentKind = "rule" | "cause" | "group_rule" | "action" | "templates";

export interface DocumentWrite {
  readonly kind: DocumentKind;
  readonly id: string;
  /** Null deletes it; its versions stay, and the next one made under this id counts on. Deleting what is not there changes nothing. */
  readonly text: string | null;
  /** The version it was made from; 0: there is none (never was, or it was deleted). */
  readonly version: number;
  readonly actor: string;
  /** On record in the same write, if it is one. */
  readonly provenance?: readonly NewProvenance[] | undefined;
}

export interface StoredDocument {
  readonly id: string;
  readonly version: number;
  readonly text: string;
  readonly actor: string;
  readonly at: Date;
}

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

export type Documents = ReturnType<typeof createDocuments>;

export function createDocuments(home: Home) {
  const { s } = home;
  const run = home.read("read documents");
  return {
    async get(kind: DocumentKind, id: string) {
      const text = `select ${COLUMNS} from ${s}.recovery_document d where d.kind = $1 and d.id = $2 and d.text is not null`;
      const [row] = await run(text, [kind, id]);
      return row ? documentOf(row) : null;
    },
    /** By id. */
    async list(kind: DocumentKind) {
      const text = `select ${COLUMNS} from ${s}.recovery_document d where d.kind = $1 and d.text is not null order by d.id`;
      return (await run(text, [kind])).map(documentOf);
    },
    /** Rises with every write of this kind: asking whether anything changed costs one small read. */
    async revision(kind: DocumentKind) {
      const [row] = await run(`select revision::text from ${s}.recovery_document_kind where kind = $1`, [kind]);
      return Number(row?.[0] ?? 0);
    },
    /** Answers with the version there is afterwards. `templates` keep no versions: their history is empty. */
    put: (write: DocumentWrite, at: At = {}) =>
      home.transaction("write a document", ({ run: inside }) => putDocument(s, inside, write, at)),
    /** Newest first; a deletion has an empty text. */
    async history(kind: DocumentKind, id: string, limit: number) {
      const text = `select ${COLUMNS} from ${s}.recovery_document_version d where d.kind = $1 and d.id = $2 order by d.version desc limit $3::int`;
      return (await run(text, [kind, id, limit])).map(documentOf);
    },
  };
}
