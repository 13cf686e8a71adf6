/** The catalogue as it is shown: what each action is set to, and how often it has healed and failed everywhere. */

import { totalsOf } from "../confidence/levels.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { NOT_INGESTED } from "../topics.ts";
import type { ActionInfo } from "./action.ts";
import type { Catalogue, CatalogueAction } from "./catalogue.ts";

export async function actionInfos(
  catalogue: Pick<Catalogue, "all">,
  recovery: Pick<Records, "stats">,
  actionType?: string,
): Promise<ActionInfo[]> {
  const [actions, { outcomes }] = await Promise.all([catalogue.all(), recovery.stats(NOT_INGESTED)]);
  const everywhere = new Map(outcomes.map((each) => [each.action, each]));
  return actions
    .filter((action) => actionType === undefined || action.actionType === actionType)
    .map((action) => infoOf(action, everywhere.get(action.actionCode)));
}

/** Saves the settings of an action and shows it as it is used from now on. */
export async function putAction(
  catalogue: Pick<Catalogue, "all" | "put">,
  recovery: Pick<Records, "stats">,
  edit: { readonly code: string; readonly text: string; readonly from: number; readonly actor: Actor },
): Promise<ActionInfo> {
  await catalogue.put(edit.code, edit.text, edit.from, edit.actor);
  return (await actionInfos(catalogue, recovery)).find(({ actionCode }) => actionCode === edit.code) as ActionInfo;
}

/** One of them, on the page of a candidate: by what is learned for its group, since counting everything takes long where there is much. */
export async function actionInfo(
  catalogue: Pick<Catalogue, "get">,
  recovery: Pick<Records, "observations">,
  code: string,
  groupId: number,
): Promise<ActionInfo | null> {
  const action = await catalogue.get(code);
  if (action === null) return null;
  const outcomes = totalsOf(await recovery.observations(groupId));
  return infoOf(
    action,
    outcomes.find((each) => each.action === code),
  );
}

function infoOf(action: CatalogueAction, counts: { successes: number; failures: number } | undefined): ActionInfo {
  const { plan: _plan, refusal: _refusal, ...rest } = action;
  return { ...rest, successes: counts?.successes ?? 0, failures: counts?.failures ?? 0 };
}
