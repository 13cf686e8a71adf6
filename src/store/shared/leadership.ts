/** What a write is refused with whose leadership has ended, the same in every store. */
import { MakegoodError } from "../../message/errors.ts";
import type { Fence } from "../../platform/job.ts";

export function leadershipLost({ name, term, owner }: Fence): MakegoodError {
  return new MakegoodError("leadership_lost", `term ${term} of ${name} has ended: nothing was written`, { name, term, owner });
}
