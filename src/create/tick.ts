/**
 * Work for a given time: for a process that is started now and then and does not stay. A worker runs until nothing is due or the time is nearly
 * over; then it stops claiming, gives back what was not started and interrupts what still runs, which counts as no attempt.
 */
import { MakegoodError } from "../message/errors.ts";
import { within } from "../platform/clock.ts";
import type { Ticked, TickOptions } from "../worker/worker.ts";
import { chosenBy, countAttempts, hasNothing, moveUp, nextDueInMs, untilIdle, type WorkOffParts } from "./work-off.ts";

/** Kept for giving back: a sink that ignores its signal is left after half a second. */
const STOP_MS = 1_000;
const BUDGET_MS_MIN = 100;

const left = (): MakegoodError =>
  new MakegoodError(
    "store_unavailable",
    "the store did not take back in time what was claimed: it comes back when its lease ends",
  );

export async function tick(parts: WorkOffParts, { budgetMs, ...how }: TickOptions): Promise<Ticked> {
  if (!(Number.isFinite(budgetMs) && budgetMs >= BUDGET_MS_MIN))
    throw new MakegoodError("invalid_config", `tick: budgetMs must be a number from ${BUDGET_MS_MIN} on`);
  const { clock } = parts;
  const endMs = clock.monotonicMs() + budgetMs;
  const leftMs = (): number => Math.max(0, endMs - clock.monotonicMs());
  const stopMs = Math.min(STOP_MS, budgetMs / 2);
  const chosen = chosenBy(how);
  const { counts, forget } = countAttempts(parts, chosen);
  let next: number | null = null;
  try {
    await within(clock, moveUp(parts), leftMs() - stopMs);
    const nothing = await within(clock, hasNothing(parts, chosen), leftMs() - stopMs);
    if (nothing === null) throw new MakegoodError("store_unavailable", `the store did not answer within ${budgetMs} ms`);
    if (!nothing) {
      const worker = parts.work(how);
      try {
        await within(clock, untilIdle(parts, worker, chosen, endMs - stopMs), leftMs() - stopMs);
      } finally {
        const stopped = worker.stop({ drainMs: 0 }).then(() => true);
        if ((await within(clock, stopped, leftMs())) === null) counts.error = left();
      }
    }
    const asked = nextDueInMs(parts, chosen).then((inMs) => ({ inMs }));
    const answer = await within(clock, asked, Math.max(1, leftMs()));
    next = answer === null ? 0 : answer.inMs;
  } catch (error) {
    counts.error ??= error;
  } finally {
    forget();
  }
  return { ...counts, nextDueInMs: next };
}
