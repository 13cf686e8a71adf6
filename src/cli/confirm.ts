/**
 * Asking before something is deleted or many messages are touched: a person at a terminal is asked, a program must have said yes
 * beforehand. Without either nothing is done, and the exit code is 2.
 */
import { Stop } from "./exit-code.ts";
import type { Io } from "./io.ts";

export interface Confirming {
  /** --yes */
  readonly yes?: boolean | undefined;
  /** --confirm: how many messages are expected. */
  readonly confirm?: number | undefined;
}

/** The option of every command that asks, and of those that may follow a redrive. */
export const YES = { "--yes": "do not ask" };
export const WAIT = { "--wait": "follow it to its end; exit code 1 if anything failed" };

export const NO_TERMINAL = "no terminal to ask at, and nothing was done: add --yes";

/** asked: a person said yes to what was shown. said: an option did. */
export async function confirmed(io: Io, { yes, confirm }: Confirming, question: string): Promise<"asked" | "said"> {
  if (yes === true || confirm !== undefined) return "said";
  const typed = await io.ask(`${question} [y/N] `);
  if (typed === null) throw new Stop(NO_TERMINAL);
  if (/^y(es)?$/i.test(typed)) return "asked";
  throw new Stop("nothing was done");
}
