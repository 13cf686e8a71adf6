/** `history` below groups, candidates and redrive: who did what to one of them, and why. */
import type { AnswerOf } from "../../contract/table.ts";
import type { AddCommand } from "../conversation.ts";
import { routeCommand } from "../route-command.ts";
import { listing } from "../table.ts";

type Line = AnswerOf<"listProvenance">["data"][number];
export const provenanceList = listing<Line>(["at", "actor", "event_type", "action", "reason"]);

export const history = (of: "group" | "candidate" | "redrive"): AddCommand =>
  routeCommand("listProvenance", {
    name: "history",
    args: { [`${of}_id`]: `<${of}>` },
    flags: { group_id: null, candidate_id: null, redrive_id: null },
    show: provenanceList,
  });
