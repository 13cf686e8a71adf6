/**
 * The options of a redrive's plan, as `redrive start` and `execute` have them, and the members of the request that they become.
 */
import { type Command, InvalidArgumentError } from "commander";
import { integer } from "../integer.ts";

export interface PlanOptions {
  readonly canary?: number;
  readonly rate?: number;
  readonly rampFrom?: number;
  readonly stopAt?: number;
  readonly delay?: number;
}

function decimal(text: string): number {
  if (!/^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text)) throw new InvalidArgumentError("It must be a number.");
  return Number(text);
}

export function planOptions(command: Command): Command {
  return command
    .option("--canary <n>", "so many first, the rest once they have healed; 0: no canary", integer)
    .option("--rate <n>", "messages a second at most", decimal)
    .option("--ramp-from <n>", "messages a second to begin with; doubles each second", decimal)
    .option("--stop-at <share>", "stop by itself when more than this share failed, such as 0.3; 1: never", decimal)
    .option("--delay <ms>", "send nothing before so many milliseconds have passed", integer);
}

export function planBody({ canary, rate, rampFrom, stopAt, delay }: PlanOptions): Record<string, number> {
  const members = { canary, rate_per_second: rate, ramp_from: rampFrom, failure_share_max: stopAt, delay_ms: delay };
  return Object.fromEntries(Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
