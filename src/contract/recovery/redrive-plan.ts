/**
 * How carefully a redrive goes, as a redrive and an execution take it. What is absent is left to the defaults; the ranges are the engine's.
 */
import { REDRIVE_LIMITS } from "../../recovery/redrive/request.ts";
import * as v from "../values.ts";

const { canaryMax, ratePerSecondMin, ratePerSecondMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;
const rate = () => v.number(ratePerSecondMin, ratePerSecondMax);

export const redrivePlan = v.optionals({
  canary: v.integer(0, canaryMax).describe("so many first, the rest once they have healed; 0: no canary"),
  rate_per_second: rate().describe("messages a second at most"),
  ramp_from: rate().describe("messages a second to begin with; doubles each second"),
  failure_share_max: v.number(0, 1).describe("stop by itself when more than this share failed; 1: never"),
  failure_min: v.integer(1, messagesMax).describe("and at least so many failed"),
  delay_ms: v.integer(0, delayMsMax).describe("send nothing before so many milliseconds have passed"),
});

/** How many messages the person saw: refused when the list is another size. */
export const confirm = () =>
  v.optional(v.integer(0, messagesMax).describe("how many messages were seen: refused if it is another number"));
