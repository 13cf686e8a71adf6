/**
 * Following a redrive to its end: a bar that redraws itself on a terminal, one line for each change elsewhere, silence with --json until
 * the end. Never waits without saying what for.
 */
import { sleep, systemClock } from "../platform/clock.ts";
import type { Api } from "./api-on.ts";
import { type Asked, ask, part } from "./ask.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { plural } from "./fitted.ts";
import { complain, type Io, say } from "./io.ts";
import type { RedriveJson } from "./json-types.ts";
import type { CommandContext } from "./run.ts";

const LOOK_MS = 500;
const BAR_CHARS = 24;
/** Nothing moved for so long: say which process would have to move it. */
const STILL_MS = 10_000;
const ENDED: readonly RedriveJson["status"][] = ["done", "stopped", "cancelled"];

export function barOf(progress: number): string {
  const full = Math.round(Math.min(1, Math.max(0, progress)) * BAR_CHARS);
  return `[${"#".repeat(full)}${".".repeat(BAR_CHARS - full)}]`;
}

/** One line: how far it is and what became of the messages. */
export function progressLine({ status, progress, counts }: RedriveJson): string {
  const { selected, healed, failed, skipped, sent, waiting } = counts;
  const parts = [
    `${healed} of ${selected} healed`,
    failed > 0 ? `${failed} failed` : "",
    skipped > 0 ? `${skipped} skipped` : "",
    sent > 0 ? `${sent} under way` : "",
    waiting > 0 ? `${waiting} waiting` : "",
  ];
  return `${barOf(progress)} ${String(Math.floor(progress * 100)).padStart(3)}% ${status}: ${parts.filter((one) => one !== "").join(", ")}`;
}

/** Until it has ended; what is shown in between depends on who reads. */
export async function follow(context: CommandContext, api: Api, id: string): Promise<Asked<RedriveJson>> {
  const { io, json } = context;
  let before = "";
  let movedAtMs = systemClock.monotonicMs();
  let warned = false;
  for (;;) {
    const asked = await ask<RedriveJson>(context, api, "GET", `/api/v1/redrives/${part(id)}`);
    if (!asked.ok) return asked;
    const line = progressLine(asked.value);
    const nowMs = systemClock.monotonicMs();
    if (line !== before) {
      movedAtMs = nowMs;
      if (!json) draw(io, line);
    } else if (!warned && nowMs - movedAtMs > STILL_MS) {
      warned = true;
      complain(io, `${io.tty ? "\n" : ""}makegood: ${stillWords(asked.value)}`);
    }
    before = line;
    if (ENDED.includes(asked.value.status)) {
      if (!json && io.tty) io.out("\n");
      return asked;
    }
    await sleep(systemClock, LOOK_MS);
  }
}

function draw(io: Io, line: string): void {
  if (io.tty) io.out(`\r\u001b[K${line}`);
  else say(io, line);
}

function stillWords({ status, redrive_id }: RedriveJson): string {
  if (status === "paused") return `it is paused: makegood redrive resume ${redrive_id}`;
  if (status === "planned") return `it is only planned: makegood redrive resume ${redrive_id} starts it`;
  return "nothing moves: a running `makegood serve` or `makegood work` carries redrives out, is one there?";
}

/** Done without a failure is 0, everything else is for a person to look at. */
export function exitOf({ status, counts }: RedriveJson): ExitCode {
  return status === "done" && counts.failed === 0 ? EXIT.ok : EXIT.failed;
}

export function sayEnd(io: Io, { status, status_reason, counts, redrive_id }: RedriveJson): void {
  const { healed, failed, skipped, selected } = counts;
  const touched = `${healed} of ${plural(selected, "message")} healed, ${failed} failed, ${skipped} skipped`;
  say(io, `redrive ${redrive_id} is ${status}: ${touched}${status_reason === null ? "" : ` (${status_reason})`}`);
  if (failed > 0) say(io, `  what failed: makegood redrive items ${redrive_id} --state failed`);
}
