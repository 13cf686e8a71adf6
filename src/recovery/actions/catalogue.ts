/** The actions there are, each with the settings that people gave it: documents, so that all processes agree. */
import { MakegoodError } from "../../message/errors.ts";
import { readObject } from "../../message/json.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents, StoredDocument } from "../documents.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { refused, versionConflict } from "../rules/book.ts";
import { parse, readJson } from "../rules/schema.ts";
import type { RecoveryAction } from "./action.ts";
import { type ActionSettings, actionFaults, settingsSchema } from "./settings.ts";
import { ACTIONS } from "./shipped.ts";

export type Catalogue = ReturnType<typeof createCatalogue>;
/** An action as it is used now: its code with its settings over it. */
export type CatalogueAction = ReturnType<typeof applied>;

const LIMIT = 200;

const coded = (action: RecoveryAction, shipped: boolean) => ({ action, shipped, schema: settingsSchema(action) });
type Coded = ReturnType<typeof coded>;

export function createCatalogue({ documents, events }: { documents: Documents; events: Events }) {
  const code = new Map(ACTIONS.map((action) => [action.actionCode, coded(action, true)]));
  let cached: { revision: number; size: number; list: readonly CatalogueAction[]; usable: ReadonlySet<string> } | undefined;

  const stored = async () => new Map((await documents.list("action")).map((each) => [each.id, each]));

  /** Settings that no longer fit the code are ignored: no person approved what they would mean now. */
  function settingsOf(found: StoredDocument | undefined, { schema }: Coded): ActionSettings {
    if (found === undefined) return {};
    const read = parse(schema, readObject(found.text)?.settings);
    if (read.ok) return read.value;
    const detail = { action: found.id, errors: read.mistakes };
    events.emit({ type: "lifecycle", what: "recovery_action_settings_unfit", detail });
    return {};
  }

  async function read() {
    const revision = await documents.revision("action");
    if (cached?.revision === revision && cached.size === code.size) return cached;
    const kept = await stored();
    const list = [...code].map(([id, each]) => applied(each, settingsOf(kept.get(id), each), kept.get(id)?.version ?? 0));
    list.sort((a, b) => b.priority - a.priority || (a.actionCode < b.actionCode ? -1 : 1));
    const usable = list.filter(({ isActive, risk }) => isActive && risk !== "forbidden");
    cached = { revision, size: list.length, list, usable: new Set(usable.map(({ actionCode }) => actionCode)) };
    return cached;
  }

  /** By priority, then code. Disabled ones included. */
  const all = async (): Promise<readonly CatalogueAction[]> => (await read()).list;
  const get = async (wanted: string): Promise<CatalogueAction | null> =>
    (await all()).find((each) => each.actionCode === wanted) ?? null;

  async function write(action: Coded, settings: ActionSettings, version: number, by: Actor): Promise<boolean> {
    const id = action.action.actionCode;
    // A process that publishes at its start edits nothing.
    const provenance = by === SYSTEM ? [] : [line("action_edited", by, { action: id, details: { from: version } })];
    const text = documentText(action, settings);
    return (await documents.put({ kind: "action", id, text, version, actor: by.actor, provenance })).kind === "done";
  }

  return {
    all,
    get,
    /** Those that may be suggested, in their order: enabled, not forbidden. The same set until one changes. */
    usable: async (): Promise<ReadonlySet<string>> => (await read()).usable,
    register(action: RecoveryAction): void {
      const { actionCode } = action;
      const errors = [...actionFaults(action)];
      if (code.has(actionCode)) errors.push({ field: "", detail: `there is an action ${actionCode} already` });
      if (code.size >= LIMIT) errors.push({ field: "", detail: `there are ${LIMIT} actions, no more can be registered` });
      if (errors.length > 0) {
        const said = errors.map(({ field, detail }) => `${field} ${detail}`.trim()).join("; ");
        throw new MakegoodError("invalid_action", `Action ${actionCode}: ${said}.`, { errors });
      }
      code.set(actionCode, coded(action, false));
    },
    async put(wanted: string, text: string, from: number, actor: Actor): Promise<void> {
      const known = code.get(wanted);
      if (known === undefined) throw notFound(wanted, [...code.keys()]);
      const given = readJson(text);
      const settings = given.ok ? parse(known.schema, given.value) : given;
      if (!settings.ok) throw refused("invalid_action", `Action ${wanted}`, settings.mistakes);
      if (await write(known, settings.value, from, actor)) return;
      throw versionConflict(`Action ${wanted}`, (await get(wanted))?.version ?? 0, from);
    },
    /** Writes the actions of the code into the store, for people who read its tables. */
    async publish(): Promise<void> {
      const kept = await stored();
      for (const [id, each] of code) {
        const found = kept.get(id);
        const settings = settingsOf(found, each);
        if (found?.text === documentText(each, settings)) continue;
        // Another process was faster: then it is published.
        await write(each, settings, found?.version ?? 0, SYSTEM);
      }
    },
  };
}

export function notFound(wanted: string, codes: readonly string[]): MakegoodError {
  const text = `There is no action ${wanted}; there are ${codes.join(", ")}.`;
  return new MakegoodError("action_not_found", text, { action: wanted });
}

/** `version`: of its settings; 0 while nobody has given it any. */
function applied({ action, shipped }: Coded, { enabled: isActive = true, ...settings }: ActionSettings, version: number) {
  const { approval = action.approval, risk = action.risk, priority = action.priority } = settings;
  const template = { ...action.template, ...settings.template };
  return { ...action, isActive, approval, risk, priority, template, shipped, version };
}

/** What is in the store: the action as it is used, and under `settings` what people set of it. */
function documentText(given: Coded, settings: ActionSettings): string {
  const action = applied(given, settings, 0);
  const { actionCode, name, actionType, priority, risk, approval, isAutomated, template, inverse, isActive, shipped } = action;
  const applies = { applies_to_codes: action.appliesToErrorCodes, applies_to_topics: action.appliesToTopics };
  const rest = { automated: isAutomated, ...applies, template, inverse, enabled: isActive, shipped, settings };
  return JSON.stringify({ code: actionCode, name, type: actionType, priority, risk, approval, ...rest });
}
