/**
 * What may be set about an action over the API: whether it is used, who must approve, its risk class, its priority, its template. Members
 * that are absent stay as they are in code. And what a program must say of an action that it registers.
 */
import { z } from "zod";
import type { Fault } from "../../message/fault.ts";
import { flag, id, number, object, oneOf, parse } from "../rules/schema.ts";
import type { RecoveryAction } from "./action.ts";
import { templateSchema } from "./template.ts";

const priority = number(0, 1_000, "whole");

export const settingsSchema = ({ template }: Pick<RecoveryAction, "template">) =>
  object({
    enabled: flag().optional(),
    approval: oneOf(["none", "one", "two"]).optional(),
    risk: oneOf(["safe", "risky", "forbidden"]).optional(),
    priority: priority.optional(),
    /** Members over those of the code. */
    template: templateSchema(template).optional(),
  });

export type ActionSettings = z.output<ReturnType<typeof settingsSchema>>;

const texts = z.custom<readonly string[]>(
  (list) => Array.isArray(list) && list.every((each) => typeof each === "string"),
  "must be a list of texts",
);

export function actionFaults(action: RecoveryAction): readonly Fault[] {
  const schema = z.looseObject({
    ...{ appliesToErrorCodes: texts, appliesToTopics: texts },
    plan: z.custom((plan) => typeof plan === "function", "must be a function"),
    ...{ actionCode: id(), priority, template: templateSchema(action.template) },
  });
  const read = parse(schema, action);
  return read.ok ? [] : read.mistakes;
}
