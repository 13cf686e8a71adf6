/**
 * How carefully a redrive goes, as a redrive and an execution take it. What is absent is left to the defaults; the ranges are the engine's.
 */
import { REDRIVE_LIMITS } from "../../recovery/redrive/request.ts";
import * as v from "../values.ts";

const { canaryMax, ratePerSecondMin, ratePerSecondMax, messagesMax, delayMsMax } = REDRIVE_LIMITS;
const rate = () => v.number(ratePerSecondMin, ratePerSecondMax);

export const redrivePlan = v.optionals({
  canary: v.integer(0, canaryMax),
  rate_per_second: rate(),
  ramp_from: rate(),
  failure_share_max: v.number(0, 1),
  failure_min: v.integer(1, messagesMax),
  delay_ms: v.integer(0, delayMsMax),
});

/** How many messages the person saw: refused when the list is another size. */
export const confirm = () => v.optional(v.integer(0, messagesMax));
