/**
 * The actions there are: those that are shipped, those that a program registers, each with the settings that people gave it.
 * Settings live in documents, so all processes agree; what an action does lives in code. Texts from history that name no action
 * of the catalogue are never taken for one.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents, StoredDocument } from "../documents.ts";
import { line, SYSTEM } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import type { ActionPriorities } from "../rules/actions.ts";
import type { RecoveryAction } from "./action.ts";
import { type ActionSettings, actionFaults, readSettings } from "./settings-text.ts";
import { ACTIONS } from "./shipped.ts";

/** An action as it is used now: its code with its settings over it. */
export interface CatalogueAction extends RecoveryAction {
  readonly isActive: boolean;
  readonly shipped: boolean;
  /** Of its settings; 0 while nobody has given it any. */
  readonly version: number;
}

export interface Catalogue {
  register(action: RecoveryAction): void;
  /** By priority, then code. Disabled ones included. */
  all(): Promise<readonly CatalogueAction[]>;
  get(code: string): Promise<CatalogueAction | null>;
  /** Those that may be suggested: enabled, not forbidden. */
  priorities(): Promise<ActionPriorities>;
  put(code: string, text: string, from: number, actor: Actor): Promise<CatalogueAction>;
  /** Writes the actions of the code into the store, for people who read its tables. */
  publish(): Promise<void>;
}

const LIMIT = 200;

export function createCatalogue({ documents, events }: { documents: Documents; events: Events }): Catalogue {
  const code = new Map<string, { readonly action: RecoveryAction; readonly shipped: boolean }>();
  for (const action of ACTIONS) code.set(action.actionCode, { action, shipped: true });
  let registered = 0;
  let cached: { revision: number; registered: number; list: CatalogueAction[] } | undefined;

  async function all(): Promise<readonly CatalogueAction[]> {
    const revision = await documents.revision("action");
    if (cached?.revision === revision && cached.registered === registered) return cached.list;
    const kept = new Map((await documents.list("action")).map((each) => [each.id, each]));
    const list = [...code.values()].map(({ action, shipped }) =>
      withSettings(action, shipped, kept.get(action.actionCode), events),
    );
    list.sort((a, b) => b.priority - a.priority || (a.actionCode < b.actionCode ? -1 : 1));
    cached = { revision, registered, list };
    return list;
  }

  const find = async (wanted: string): Promise<CatalogueAction | null> =>
    (await all()).find((each) => each.actionCode === wanted) ?? null;

  async function write(action: RecoveryAction, settings: ActionSettings, version: number, by: Actor): Promise<boolean> {
    const shipped = code.get(action.actionCode)?.shipped ?? false;
    const text = documentText(action, settings, shipped);
    // A process that publishes at its start edits nothing.
    const provenance =
      by === SYSTEM ? [] : [line("action_edited", by, { action: action.actionCode, details: { from: version } })];
    const write = { kind: "action", id: action.actionCode, text, version, actor: by.actor, provenance } as const;
    return (await documents.put(write)).kind === "done";
  }

  return {
    register(action) {
      const faults = actionFaults(action);
      if (code.has(action.actionCode)) faults.push(`there is an action ${action.actionCode} already`);
      if (code.size >= LIMIT) faults.push(`there are ${LIMIT} actions, no more can be registered`);
      if (faults.length > 0) {
        throw new MakegoodError("invalid_action", `Action ${action.actionCode}: ${faults.join("; ")}.`, {
          errors: faults.map((detail) => ({ field: "", detail })),
        });
      }
      code.set(action.actionCode, { action, shipped: false });
      registered++;
    },
    all,
    get: find,
    async priorities() {
      const usable = (await all()).filter(({ isActive, risk }) => isActive && risk !== "forbidden");
      return new Map(usable.map(({ actionCode: each, priority }) => [each, priority]));
    },
    async put(wanted, text, from, actor) {
      const known = code.get(wanted);
      if (known === undefined) throw notFound(wanted, [...code.keys()]);
      const read = readSettings(text, known.action);
      if (!read.ok) {
        const first = read.mistakes[0];
        throw new MakegoodError("invalid_action", `Action ${wanted}: ${first?.field} ${first?.detail}.`, {
          errors: read.mistakes,
        });
      }
      if (!(await write(known.action, read.settings, from, actor))) {
        const now = (await find(wanted))?.version ?? 0;
        throw new MakegoodError("version_conflict", `Action ${wanted} has version ${now} now, not ${from}: read it again.`, {
          version: now,
        });
      }
      return (await find(wanted)) as CatalogueAction;
    },
    async publish() {
      const kept = new Map((await documents.list("action")).map((each) => [each.id, each]));
      for (const { action, shipped } of code.values()) {
        const found = kept.get(action.actionCode);
        const settings = found === undefined ? {} : settingsOf(found, action, events);
        if (found?.text === documentText(action, settings, shipped)) continue;
        // Another process was faster: then it is published.
        await write(action, settings, found?.version ?? 0, SYSTEM);
      }
    },
  };
}

export function notFound(wanted: string, codes: readonly string[]): MakegoodError {
  const text = `There is no action ${wanted}; there are ${codes.join(", ")}.`;
  return new MakegoodError("action_not_found", text, { action: wanted });
}

function settingsOf(found: StoredDocument, action: RecoveryAction, events: Events): ActionSettings {
  try {
    // Settings that no longer fit the code are ignored: no person approved what they would mean now.
    const read = readSettings(JSON.stringify((JSON.parse(found.text) as { settings: unknown }).settings), action);
    if (read.ok) return read.settings;
    events.emit({
      type: "lifecycle",
      what: "recovery_action_settings_unfit",
      detail: { action: found.id, errors: read.mistakes },
    });
  } catch (error) {
    events.emit({
      type: "lifecycle",
      what: "recovery_action_settings_unfit",
      detail: { action: found.id, error: errorText(error) },
    });
  }
  return {};
}

function withSettings(
  action: RecoveryAction,
  shipped: boolean,
  found: StoredDocument | undefined,
  events: Events,
): CatalogueAction {
  if (found === undefined) return applied(action, {}, shipped, 0);
  return applied(action, settingsOf(found, action, events), shipped, found.version);
}

function applied(action: RecoveryAction, settings: ActionSettings, shipped: boolean, version: number): CatalogueAction {
  const { enabled = true, approval = action.approval, risk = action.risk, priority = action.priority } = settings;
  return {
    ...action,
    isActive: enabled,
    approval,
    risk,
    priority,
    template: { ...action.template, ...settings.template },
    shipped,
    version,
  };
}

/** What is in the store: the action as it is used, and under `settings` what people set of it. */
function documentText(given: RecoveryAction, settings: ActionSettings, shipped: boolean): string {
  const action = applied(given, settings, shipped, 0);
  const { actionCode, name, actionType, priority, risk, approval, isAutomated, template, inverse, isActive } = action;
  const applies = { applies_to_codes: action.appliesToErrorCodes, applies_to_topics: action.appliesToTopics };
  const rest = { automated: isAutomated, ...applies, template, inverse, enabled: isActive, shipped, settings };
  return JSON.stringify({ code: actionCode, name, type: actionType, priority, risk, approval, ...rest });
}
