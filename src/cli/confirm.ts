/**
 * Asking before something touches many messages: a person at a terminal is asked, a program must have said yes beforehand. Without
 * either nothing is done.
 */
import { complain, type Io } from "./io.ts";

export interface Confirming {
  /** --yes */
  readonly yes?: boolean | undefined;
  /** --confirm: how many messages are expected. */
  readonly confirm?: number | undefined;
}

/** asked: a person said yes to what was shown. said: an option did. no: nothing may be done, and that has been said. */
export async function confirmed(io: Io, { yes, confirm }: Confirming, question: string): Promise<"asked" | "said" | "no"> {
  if (yes === true || confirm !== undefined) return "said";
  const typed = await io.ask(`${question} [y/N] `);
  if (typed === null) {
    complain(io, "makegood: no terminal to ask at: add --yes, or --confirm with the number of messages you expect");
    return "no";
  }
  if (/^y(es)?$/i.test(typed)) return "asked";
  complain(io, "makegood: nothing was done");
  return "no";
}
