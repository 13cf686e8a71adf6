/**
 * Documents that are shipped, overlaid by what people stored under the same id: rules, and signatures of causes. One is saved only if it
 * can be used beside all the others; a stored one that cannot be read is left out and said, so that one bad one never stops the others.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents, StoredDocument } from "../documents.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";

interface Entry {
  readonly id: string;
  readonly version: number;
  readonly enabled: boolean;
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly mistakes: readonly Fault[] };

export interface Book<T> {
  /** In their order. The same list until one is written. */
  all(): Promise<readonly T[]>;
  put(id: string, text: string, from: number, actor: Actor): Promise<T>;
  /** A shipped one is disabled instead: it would be back with the next start. */
  remove(id: string, from: number, actor: Actor): Promise<void>;
  history(id: string): Promise<StoredDocument[]>;
}

export interface BookOptions<T> {
  readonly documents: Documents;
  readonly events: Events;
  readonly kind: "rule" | "cause";
  readonly shipped: readonly T[];
  /** `stored`: it was saved before, so what it names may be known in another process only. */
  readonly parse: (value: unknown, stored: boolean) => Parsed<T> | Promise<Parsed<T>>;
  readonly json: (entry: T) => object;
  readonly ordered: (entries: readonly T[]) => T[];
  /** Throws what speaks against using them all together. */
  readonly check: (entries: readonly T[]) => void | Promise<void>;
}

const HISTORY_MAX = 100;

export function createBook<T extends Entry>(options: BookOptions<T>): Book<T> {
  const { documents, events, kind, parse, json, ordered, check } = options;
  const shipped = new Map(options.shipped.map((entry) => [entry.id, entry]));
  const title = kind === "rule" ? "Rule" : "Signature";
  /** A shipped one has version 1 before anybody stored anything under its id. */
  const shippedVersion = (id: string): number => (shipped.has(id) ? 1 : 0);
  let cached: { readonly revision: number; readonly list: readonly T[] } | undefined;

  async function all(): Promise<readonly T[]> {
    const revision = await documents.revision(kind);
    if (cached?.revision === revision) return cached.list;
    const byId = new Map(shipped);
    for (const { id, text, version } of await documents.list(kind)) {
      const parsed = await parseText(text, (value) => parse(value, true));
      if (parsed.ok) byId.set(id, { ...parsed.value, id, version: version + shippedVersion(id) });
      else
        events.emit({
          type: "lifecycle",
          what: `recovery_${kind}_unreadable`,
          detail: { [kind]: id, errors: parsed.mistakes },
        });
    }
    cached = { revision, list: ordered([...byId.values()]) };
    return cached.list;
  }

  const known = async (id: string): Promise<T | undefined> => (await all()).find((entry) => entry.id === id);

  async function write(what: "edited" | "deleted", id: string, text: string | null, from: number, actor: Actor): Promise<void> {
    const version = Math.max(0, from - shippedVersion(id));
    const fits = from === ((await known(id))?.version ?? 0);
    const provenance = [line(`${kind}_${what}`, actor, { ruleId: id, details: { from } })];
    if (fits && (await documents.put({ kind, id, text, version, actor: actor.actor, provenance })).kind === "done") return;
    const now = (await known(id))?.version ?? 0;
    const said = `${title} ${id} has version ${now} now, not ${from}: read it again.`;
    throw new MakegoodError("version_conflict", said, { version: now });
  }

  function refused(id: string, mistakes: readonly Fault[]): MakegoodError {
    const { field = "", detail = "" } = mistakes[0] ?? {};
    const said = `${field} ${detail.replace(/\.$/, "")}`.trim();
    const more = mistakes.length > 1 ? ` (and ${mistakes.length - 1} more)` : "";
    return new MakegoodError(`invalid_${kind}`, `${title} ${id}: ${said}${more}.`, { errors: mistakes });
  }

  return {
    all,
    async put(id, text, from, actor) {
      const parsed = await parseText(text, (value) => parse(value, false));
      if (!parsed.ok) throw refused(id, parsed.mistakes);
      if (parsed.value.id !== id) throw refused(id, [{ field: "id", detail: `must be ${id}, as in the address` }]);
      const entry = { ...parsed.value, version: from + 1 };
      try {
        await check([...(await all()).filter((other) => other.id !== id), entry]);
      } catch (error) {
        throw refused(id, [{ field: "", detail: errorText(error) }]);
      }
      await write("edited", id, JSON.stringify(json(entry)), from, actor);
      return (await known(id)) ?? entry;
    },
    async remove(id, from, actor) {
      const entry = await known(id);
      if (entry === undefined) {
        throw new MakegoodError(`${kind}_not_found`, `There is no ${title.toLowerCase()} ${id}.`, { [kind]: id });
      }
      await write("deleted", id, shipped.has(id) ? JSON.stringify(json({ ...entry, enabled: false })) : null, from, actor);
    },
    history: (id) => documents.history(kind, id, HISTORY_MAX),
  };
}

async function parseText<T>(text: string, parse: (value: unknown) => Parsed<T> | Promise<Parsed<T>>): Promise<Parsed<T>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, mistakes: [{ field: "", detail: `is not JSON: ${errorText(error)}` }] };
  }
  return parse(value);
}
