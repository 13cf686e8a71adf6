/**
 * `makegood redrive start|list|status|items|history|pause|resume|cancel`. On a terminal `start` freezes the list first, shows it, and asks. Following
 * one to its end is a bar that redraws itself on a terminal, one line for each change elsewhere, silence with --json until the end; it never
 * waits without saying what for.
 */
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { ask, type Conversation, confirmed, family, NO_TERMINAL, type Options, WAIT } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listing, plural, sayFields } from "../table.ts";
import { history } from "./history.ts";

type Redrive = AnswerOf<"getRedrive">;
const healed = ["healed", ({ counts }: Redrive) => `${counts.healed}/${counts.selected}`] as const;
const failed = ["failed", ({ counts }: Redrive) => counts.failed] as const;
const redriveList = listing<Redrive>(["redrive_id", "status", healed, failed, ["ago", "created_at"], "reason"]);
const itemList = listing<AnswerOf<"listRedriveItems">["data"][number]>(["n", "message_id", "state", "reason"]);
const sayStatus = (io: Io, { redrive_id, status }: Redrive): void => say(io, `redrive ${redrive_id} is ${status}`);

const LOOK_MS = 500;
const BAR_CHARS = 24;
/** Nothing moved for so long: say which process would have to move it. */
const STILL_MS = 10_000;
const ENDED: readonly Redrive["status"][] = ["done", "stopped", "cancelled"];

export const commands = family("redrive", "put many dead letters back as one careful operation", [
  routeCommand("startRedrive", {
    name: "start",
    flags: { mode: null, delay_ms: "delay" },
    about: "freeze the list of dead letters that fit, show it, ask, and begin",
    example: 'redrive start --group 3 --reason "billing is back" --canary 10 --rate 100 --wait',
    options: { "--new-key": "as new messages under new keys: for receivers that remember the old key wrongly", ...WAIT },
    act: start,
  }),
  routeCommand("listRedrives", { name: "list", show: redriveList }),
  routeCommand("getRedrive", {
    name: "status",
    args: { id: "[redrive]" },
    about: "how far it is; without an id, the latest ones",
    options: { "--watch": "follow it to its end; exit code 1 if anything failed" },
    async act(asking, { id }: { readonly id?: string | number }, { watch }) {
      if (id === undefined) {
        const { value, text } = await ask(asking, "listRedrives", { limit: 20 });
        return tell(asking, text, () => redriveList(asking.io, value));
      }
      if (watch === true) return watched(asking, String(id));
      const { value, text } = await ask(asking, "getRedrive", { id });
      return tell(asking, text, () => showRedrive(asking.io, value));
    },
  }),
  routeCommand("listRedriveItems", { name: "items", show: itemList }),
  history("redrive"),
  routeCommand("pauseRedrive", { name: "pause", show: sayStatus }),
  routeCommand("resumeRedrive", { name: "resume", show: sayStatus }),
  routeCommand("cancelRedrive", { name: "cancel", show: sayStatus }),
]);

async function start(asking: Conversation, input: InputOf<"startRedrive">, options: Options): Promise<ExitCode> {
  const { io, json } = asking;
  const body = { ...input, mode: options.newKey === true ? ("new_key" as const) : undefined };
  const sure = options.yes === true || body.confirm !== undefined || body.dry_run === true;
  if (!sure && !(io.tty && !json))
    throw new Stop(`${NO_TERMINAL}, --confirm with the number of messages you expect, or --dry-run`);
  const made = await ask(asking, "startRedrive", sure ? body : { ...body, dry_run: true });
  const { value, text } = sure ? made : await afterAsking(asking, made.value);
  if (options.wait === true && value.status !== "planned") return watched(asking, value.redrive_id);
  return tell(asking, text, () => {
    say(io, `redrive ${value.redrive_id} is ${value.status}: ${plural(value.counts.selected, "message")}`);
    if (value.status === "planned") say(io, `  begin: makegood redrive resume ${value.redrive_id}`);
    else say(io, `  follow it: makegood redrive status ${value.redrive_id} --watch`);
  });
}

/** The list is frozen already, so what is begun is exactly what was shown. */
async function afterAsking(asking: Conversation, planned: Redrive) {
  const { redrive_id: id, counts, version } = planned;
  showRedrive(asking.io, planned);
  try {
    await confirmed(asking.io, `Put ${plural(counts.selected - counts.skipped, "message")} back?`);
  } catch (error) {
    await ask(asking, "cancelRedrive", { id, reason: "not confirmed" });
    throw error;
  }
  return ask(asking, "resumeRedrive", { id, version });
}

function showRedrive(io: Io, one: Redrive): void {
  const filter = Object.entries(one.select).filter(([name, value]) => value !== null && !/^(limit|generation_max)$/.test(name));
  const plan = one.plan !== null && typeof one.plan === "object" ? Object.entries(one.plan) : [];
  const words = (entries: readonly [string, unknown][]) => entries.map(([name, value]) => `${name} ${String(value)}`).join(", ");
  sayFields(io, {
    redrive: one.redrive_id,
    messages: one.counts.selected,
    select: words(filter),
    mode: one.mode,
    plan: words(plan),
    reason: one.reason,
    actor: one.actor,
    "left out": one.counts.skipped > 0 && one.status === "planned" ? `${one.counts.skipped}: replayed often enough` : null,
    why: one.status_reason,
  });
  say(io, progressLine(one));
}

/** One line: how far it is and what became of the messages. */
function progressLine({ status, progress, counts }: Redrive): string {
  const { selected, healed, failed, skipped, sent, waiting } = counts;
  const full = Math.round(Math.min(1, Math.max(0, progress)) * BAR_CHARS);
  const others = Object.entries({ failed, skipped, "under way": sent, waiting }).filter(([, count]) => count > 0);
  const parts = [`${healed} of ${selected} healed`, ...others.map(([words, count]) => `${count} ${words}`)];
  const bar = `[${"#".repeat(full)}${".".repeat(BAR_CHARS - full)}]`;
  return `${bar} ${String(Math.floor(progress * 100)).padStart(3)}% ${status}: ${parts.join(", ")}`;
}

/** Until it has ended. Done without a failure is 0, everything else is for a person to look at. What is shown in between depends on who reads. */
export async function watched(asking: Conversation, id: string): Promise<ExitCode> {
  const { io, json } = asking;
  let before = "";
  let movedAtMs = systemClock.monotonicMs();
  let warned = false;
  for (;;) {
    const { value, text } = await ask(asking, "getRedrive", { id });
    const line = progressLine(value);
    const nowMs = systemClock.monotonicMs();
    if (line !== before) {
      movedAtMs = nowMs;
      if (!json) io.out(io.tty ? `\r\u001b[K${line}` : `${line}\n`);
    } else if (!warned && nowMs - movedAtMs > STILL_MS) {
      warned = true;
      complain(io, `${io.tty ? "\n" : ""}makegood: ${stillWords(value)}`);
    }
    before = line;
    if (ENDED.includes(value.status)) {
      if (!json && io.tty) io.out("\n");
      tell(asking, text, () => sayEnd(io, value));
      return value.status === "done" && value.counts.failed === 0 ? EXIT.ok : EXIT.failed;
    }
    await sleep(systemClock, LOOK_MS);
  }
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
