/** JSON texts under a version, written by compare-and-set, so that two editors never overwrite each other; every version is kept. */
import type { Home, Run } from "../store/home.ts";
import { clockSql } from "../store/shared/clock-sql.ts";
import type { At } from "../store/store.ts";
import { columns, int, moment, text } from "./columns.ts";
import { type NewProvenance, record } from "./provenance.ts";

export type DocumentKind = "rule" | "cause" | "group_rule" | "action" | "templates";

export interface DocumentWrite {
  readonly kind: DocumentKind;
  readonly id: string;
  /** Null deletes it; its versions stay, and the next one made under this id counts on. Deleting what is not there changes nothing. */
  readonly text: string | null;
  /** The version it was made from; 0: there is none (never was, or it was deleted). */
  readonly version: number;
  readonly actor: string;
  readonly provenance?: readonly NewProvenance[] | undefined;
}

const DOCUMENT = columns({
  id: text("d.id"),
  version: int("d.version"),
  text: text("coalesce(d.text, '')"),
  actor: text("d.actor"),
  at: moment("d.at"),
});

export type StoredDocument = ReturnType<typeof DOCUMENT.of>;

export async function putDocument(s: string, run: Run, write: DocumentWrite, { now }: At) {
  const { kind, id, actor } = write;
  // Writers of one kind come one after the other.
  await run(
    `insert into ${s}.recovery_document_kind as k (kind, revision) values ($1, 0) on conflict (kind) do update set revision = k.revision`,
    [kind],
  );
  const found = `select version::text, (text is null)::text from ${s}.recovery_document where kind = $1 and id = $2`;
  const [[last, deleted] = ["0", "true"]] = await run(found, [kind, id]);
  const version = deleted === "true" ? 0 : Number(last);
  if (write.version !== version) return { kind: "version_conflict", version } as const;
  if (write.text === null && version === 0) return { kind: "done", version } as const;
  const next = Number(last) + 1;
  const clock = clockSql(now);
  await run(
    `with d as (insert into ${s}.recovery_document (kind, id, version, text, actor, at) values ($1, $2, $3::int, $4, $5, ${clock})
        on conflict (kind, id) do update set version = excluded.version, text = excluded.text, actor = excluded.actor, at = excluded.at),
      v as (insert into ${s}.recovery_document_version (kind, id, version, text, actor, at)
        select $1, $2, $3::int, coalesce($4, ''), $5, ${clock} where $1 <> 'templates')
      update ${s}.recovery_document_kind set revision = revision + 1 where kind = $1`,
    [kind, id, next, write.text, actor],
  );
  await record(s, run, write.provenance ?? [], { now });
  return { kind: "done", version: next } as const;
}

export type Documents = ReturnType<typeof createDocuments>;

export function createDocuments(home: Home) {
  const { s } = home;
  const run = home.read("read documents");
  const read = async (from: string, values: unknown[]) =>
    (await run(`select ${DOCUMENT.list} from ${s}.${from}`, values)).map(DOCUMENT.of);
  return {
    async get(kind: DocumentKind, id: string) {
      const [found] = await read("recovery_document d where d.kind = $1 and d.id = $2 and d.text is not null", [kind, id]);
      return found ?? null;
    },
    list: (kind: DocumentKind) => read("recovery_document d where d.kind = $1 and d.text is not null order by d.id", [kind]),
    /** Rises with every write of this kind: asking whether anything changed costs one small read. */
    async revision(kind: DocumentKind) {
      const [row] = await run(`select revision::text from ${s}.recovery_document_kind where kind = $1`, [kind]);
      return Number(row?.[0] ?? 0);
    },
    /** Answers with the version there is afterwards. `templates` keep no versions: their history is empty. */
    put: (write: DocumentWrite, at: At = {}) =>
      home.transaction("write a document", ({ run: inside }) => putDocument(s, inside, write, at)),
    /** Newest first; a deletion has an empty text. */
    history: (kind: DocumentKind, id: string, limit: number) =>
      read("recovery_document_version d where d.kind = $1 and d.id = $2 order by d.version desc limit $3::int", [
        kind,
        id,
        limit,
      ]),
  };
}
