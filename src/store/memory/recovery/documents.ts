/** The documents of the recovery seam in memory: compare-and-set, every version kept but those of templates. */
import type { DocumentKind, DocumentStore, DocumentWrite, StoredDocument } from "../../documents.ts";
import type { At } from "../../store.ts";
import { nowMs } from "../state.ts";
import { record } from "./provenance.ts";
import { atomically, type DocumentRow, type Memory, set } from "./records.ts";

const nameOf = (kind: DocumentKind, id: string): string => JSON.stringify([kind, id]);

export function putDocument(
  memory: Memory,
  write: DocumentWrite,
  at?: At,
): { readonly kind: "done" | "version_conflict"; readonly version: number } {
  const { kind, id, text, actor } = write;
  const name = nameOf(kind, id);
  const known = memory.documents.get(name);
  const version = known && known.text !== null ? known.version : 0;
  if (write.version !== version) return { kind: "version_conflict", version };
  if (text === null && version === 0) return { kind: "done", version };
  const row: DocumentRow = { id, version: (known?.version ?? 0) + 1, text, actor, at: new Date(nowMs(memory.kernel, at)) };
  set(memory, memory.documents, name, row);
  if (kind !== "templates") set(memory, memory.versions, name, [...(memory.versions.get(name) ?? []), row]);
  set(memory, memory.revisions, kind, (memory.revisions.get(kind) ?? 0) + 1);
  record(memory, write.provenance ?? [], row.at);
  return { kind: "done", version: row.version };
}

const shown = (row: DocumentRow): StoredDocument => ({ ...row, text: row.text ?? "" });

export function createDocuments(memory: Memory, alive: () => void): DocumentStore {
  const read = async <T>(work: () => T): Promise<T> => {
    alive();
    return work();
  };
  return {
    get: (kind, id) =>
      read(() => {
        const row = memory.documents.get(nameOf(kind, id));
        return row && row.text !== null ? shown(row) : null;
      }),
    list: (kind) =>
      read(() =>
        [...memory.documents]
          .filter(([name, { text }]) => text !== null && (JSON.parse(name) as string[])[0] === kind)
          .map(([, row]) => shown(row))
          .sort((a, b) => (a.id < b.id ? -1 : 1)),
      ),
    revision: (kind) => read(() => memory.revisions.get(kind) ?? 0),
    put: (write, at) => read(() => atomically(memory, () => putDocument(memory, write, at))),
    history: (kind, id, limit) =>
      read(() => [...(memory.versions.get(nameOf(kind, id)) ?? [])].reverse().slice(0, limit).map(shown)),
  };
}
