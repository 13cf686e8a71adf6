/**
 * Following a redrive to its end: a bar that redraws itself on a terminal, one line for each change elsewhere, silence with --json until
 * the end. Never waits without saying what for.
 */
import type { AnswerOf } from "../contract/table.ts";
import { sleep, systemClock } from "../platform/clock.ts";
import { type Answered, ask, type Conversation } from "./conversation.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { complain, type Io, printJson, say } from "./io.ts";
import { plural } from "./table.ts";

export type Redrive = AnswerOf<"getRedrive">;

const LOOK_MS = 500;
const BAR_CHARS = 24;
/** Nothing moved for so long: say which process would have to move it. */
const STILL_MS = 10_000;
const ENDED: readonly Redrive["status"][] = ["done", "stopped", "cancelled"];

/** One line: how far it is and what became of the messages. */
export function progressLine({ status, progress, counts }: Redrive): string {
  const { selected, healed, failed, skipped, sent, waiting } = counts;
  const full = Math.round(Math.min(1, Math.max(0, progress)) * BAR_CHARS);
  const parts = [
    `${healed} of ${selected} healed`,
    failed > 0 ? `${failed} failed` : "",
    skipped > 0 ? `${skipped} skipped` : "",
    sent > 0 ? `${sent} under way` : "",
    waiting > 0 ? `${waiting} waiting` : "",
  ];
  const bar = `[${"#".repeat(full)}${".".repeat(BAR_CHARS - full)}]`;
  return `${bar} ${String(Math.floor(progress * 100)).padStart(3)}% ${status}: ${parts.filter((one) => one !== "").join(", ")}`;
}

/** Until it has ended. Done without a failure is 0, everything else is for a person to look at. */
export async function watched(asking: Conversation, id: string): Promise<ExitCode> {
  const { value, text } = await follow(asking, id);
  if (asking.json) printJson(asking.io, text);
  else sayEnd(asking.io, value);
  return value.status === "done" && value.counts.failed === 0 ? EXIT.ok : EXIT.failed;
}

/** What is shown in between depends on who reads. */
async function follow(asking: Conversation, id: string): Promise<Answered<Redrive>> {
  const { io, json } = asking;
  let before = "";
  let movedAtMs = systemClock.monotonicMs();
  let warned = false;
  for (;;) {
    const asked = await ask(asking, "getRedrive", { id });
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

function stillWords({ status, redrive_id }: Redrive): string {
  if (status === "paused") return `it is paused: makegood redrive resume ${redrive_id}`;
  if (status === "planned") return `it is only planned: makegood redrive resume ${redrive_id} starts it`;
  return "nothing moves: a running `makegood serve` or `makegood work` carries redrives out, is one there?";
}

function sayEnd(io: Io, { status, status_reason, counts, redrive_id }: Redrive): void {
  const { healed, failed, skipped, selected } = counts;
  const touched = `${healed} of ${plural(selected, "message")} healed, ${failed} failed, ${skipped} skipped`;
  say(io, `redrive ${redrive_id} is ${status}: ${touched}${status_reason === null ? "" : ` (${status_reason})`}`);
  if (failed > 0) say(io, `  what failed: makegood redrive items ${redrive_id} --state failed`);
}
