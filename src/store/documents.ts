/**
 * The documents of the recovery seam: what people and the engine decide once and read often (rules, signatures of causes, group rules, the catalogue,
 * templates), as JSON texts under a version. Written by compare-and-set, so that two editors never overwrite each other.
 */
import type { NewProvenance } from "./recovery.ts";
import type { At } from "./store.ts";

/** Rules, signatures, group rules, catalogue entries, templates: JSON texts under a version, written by compare-and-set; every version is kept. */
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

export interface DocumentStore {
  get(kind: DocumentKind, id: string): Promise<StoredDocument | null>;
  /** By id. */
  list(kind: DocumentKind): Promise<StoredDocument[]>;
  /** Rises with every write of this kind: asking whether anything changed costs one small read. */
  revision(kind: DocumentKind): Promise<number>;
  /** Answers with the version there is afterwards. `templates` keep no versions: their history is empty. */
  put(write: DocumentWrite, at?: At): Promise<{ readonly kind: "done" | "version_conflict"; readonly version: number }>;
  /** Newest first; a deletion has an empty text. */
  history(kind: DocumentKind, id: string, limit: number): Promise<StoredDocument[]>;
}
