/** The catalogue as it is shown: what each action is set to, and how often it has healed and failed everywhere. */
import { totalsOf } from "../confidence/levels.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { NOT_INGESTED } from "../topics.ts";
import type { ActionInfo } from "./action.ts";
import type { Catalogue, CatalogueAction } from "./catalogue.ts";

type Outcomes = readonly { readonly action: string; readonly successes: number; readonly failures: number }[];

export async function actionInfos(
  { all }: Pick<Catalogue, "all">,
  { stats }: Pick<Records, "stats">,
  actionType?: string,
): Promise<ActionInfo[]> {
  const [actions, { outcomes }] = await Promise.all([all(), stats(NOT_INGESTED)]);
  return actions
    .filter((action) => actionType === undefined || action.actionType === actionType)
    .map((action) => infoOf(action, outcomes));
}

/** Saves the settings of an action and shows it as it is used from now on. */
export async function putAction(
  catalogue: Catalogue,
  recovery: Records,
  edit: { readonly code: string; readonly text: string; readonly from: number; readonly actor: Actor },
): Promise<ActionInfo> {
  await catalogue.put(edit.code, edit.text, edit.from, edit.actor);
  return (await actionInfos(catalogue, recovery)).find(({ actionCode }) => actionCode === edit.code) as ActionInfo;
}

/** One of them, on the page of a candidate: by what is learned for its group, since counting everything takes long where there is much. */
export async function actionInfo(
  { get }: Pick<Catalogue, "get">,
  { observations }: Pick<Records, "observations">,
  code: string,
  groupId: number,
): Promise<ActionInfo | null> {
  const action = await get(code);
  return action && infoOf(action, totalsOf(await observations(groupId)));
}

function infoOf({ plan: _, refusal: __, ...action }: CatalogueAction, outcomes: Outcomes): ActionInfo {
  const { successes = 0, failures = 0 } = outcomes.find((each) => each.action === action.actionCode) ?? {};
  return { ...action, successes, failures };
}
