/**
 * Documents that are shipped, overlaid by what people stored under the same id: rules, and signatures of causes. One is saved only if it
 * can be used beside all the others; a stored one that cannot be read is left out and said, so that one bad one never stops the others.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Fault } from "../../message/fault.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents } from "../documents.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { type Parsed, readJson } from "./schema.ts";

interface Entry {
  readonly id: string;
  readonly version: number;
  readonly enabled: boolean;
}

interface BookOptions<T> {
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

export function createBook<T extends Entry>({
  documents,
  events,
  kind,
  parse,
  json,
  ordered,
  check,
  ...options
}: BookOptions<T>) {
  const shipped = new Map(options.shipped.map((entry) => [entry.id, entry]));
  const title = kind === "rule" ? "Rule" : "Signature";
  /** A shipped one has version 1 before anybody stored anything under its id. */
  const shippedVersion = (id: string): number => (shipped.has(id) ? 1 : 0);
  let cached: { readonly revision: number; readonly list: readonly T[] } | undefined;

  async function read(text: string, stored: boolean): Promise<Parsed<T>> {
    const found = readJson(text);
    return found.ok ? parse(found.value, stored) : found;
  }

  /** In their order. The same list until one is written. */
  async function all(): Promise<readonly T[]> {
    const revision = await documents.revision(kind);
    if (cached?.revision === revision) return cached.list;
    const byId = new Map(shipped);
    for (const { id, text, version } of await documents.list(kind)) {
      const parsed = await read(text, true);
      if (parsed.ok) byId.set(id, { ...parsed.value, id, version: version + shippedVersion(id) });
      else {
        const detail = { [kind]: id, errors: parsed.mistakes };
        events.emit({ type: "lifecycle", what: `recovery_${kind}_unreadable`, detail });
      }
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
    throw versionConflict(`${title} ${id}`, (await known(id))?.version ?? 0, from);
  }

  return {
    all,
    async put(id: string, text: string, from: number, actor: Actor): Promise<T> {
      const refuse = (mistakes: readonly Fault[]) => refused(`invalid_${kind}`, `${title} ${id}`, mistakes);
      const parsed = await read(text, false);
      if (!parsed.ok) throw refuse(parsed.mistakes);
      if (parsed.value.id !== id) throw refuse([{ field: "id", detail: `must be ${id}, as in the address` }]);
      const entry = { ...parsed.value, version: from + 1 };
      try {
        await check([...(await all()).filter((other) => other.id !== id), entry]);
      } catch (error) {
        throw refuse([{ field: "", detail: errorText(error) }]);
      }
      await write("edited", id, JSON.stringify(json(entry)), from, actor);
      return (await known(id)) ?? entry;
    },
    /** A shipped one is disabled instead: it would be back with the next start. */
    async remove(id: string, from: number, actor: Actor): Promise<void> {
      const entry = await known(id);
      if (entry === undefined) {
        throw new MakegoodError(`${kind}_not_found`, `There is no ${title.toLowerCase()} ${id}.`, { [kind]: id });
      }
      await write("deleted", id, shipped.has(id) ? JSON.stringify(json({ ...entry, enabled: false })) : null, from, actor);
    },
    history: (id: string) => documents.history(kind, id, HISTORY_MAX),
  };
}

export function versionConflict(what: string, version: number, from: number): MakegoodError {
  return new MakegoodError("version_conflict", `${what} has version ${version} now, not ${from}: read it again.`, { version });
}

type Refusal = "invalid_rule" | "invalid_cause" | "invalid_action";

export function refused(code: Refusal, what: string, errors: readonly Fault[]): MakegoodError {
  const { field = "", detail = "" } = errors[0] ?? {};
  const said = `${field} ${detail.replace(/\.$/, "")}`.trim();
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return new MakegoodError(code, `${what}: ${said}${more}.`, { errors });
}
