/** `makegood redrive …`: `start` shows the list and asks; following one to its end never waits without saying what for. */
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { ask, type Conversation, confirmed, family, NO_TERMINAL, type Options, WAIT } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { history, routeCommand } from "../route-command.ts";
import { listBelow, listing, plural, sayFields } from "../table.ts";

type Redrive = AnswerOf<"getRedrive">;
type Listed = AnswerOf<"listRedrives">["data"][number];
const healed = ["healed", ({ counts }: Listed) => `${counts.healed}/${counts.selected}`] as const;
const failed = ["failed", ({ counts }: Listed) => counts.failed] as const;
const redriveList = listing<Listed>(["redrive_id", "status", healed, failed, ["ago", "created_at"], "reason"]);
const itemList = listing<AnswerOf<"listRedriveItems">["data"][number]>(["n", "message_id", "state", "reason"]);
const sayStatus = (io: Io, { redrive_id, status }: Redrive): void => say(io, `redrive ${redrive_id} is ${status}`);

type Group = Redrive["groups"][number];
const group = ["group", ({ group_id, error_code }: Group) => group_id ?? error_code] as const;
const verdict = ["verdict", (of: Group) => of.verdict ?? "not known yet"] as const;
const groupList = listing<Group>([group, "topic", verdict, "healed", "failed", "sent", "waiting", "reason"]);

/** What becomes of a message, by mode; where no receiver is asked it is done once it was touched. */
const DONE: Readonly<Record<string, string>> = {
  resolve: "resolved",
  discard: "discarded",
  reopen: "reopened",
  watch: "watched",
};

const LOOK_MS = 500;
const BAR_CHARS = 24;
/** Nothing moved for so long: say which process would have to move it. */
const STILL_MS = 10_000;
const ENDED: readonly Redrive["status"][] = ["done", "stopped", "cancelled"];

export const commands = family("redrive", "put many dead letters back as one careful operation", [
  routeCommand("startRedrive", {
    name: "start",
    flags: { delay_ms: "delay", group_ids: "groups", redrive_id: "redrive" },
    about: "freeze the list of dead letters that fit, show it, ask, and begin",
    example:
      'redrive start --group 3 --reason "billing is back" --canary 10 --rate 100 --wait\n  $ makegood redrive start --topic shop/order --since 2026-01-31T09:00Z --mode discard --reason "test orders"',
    options: { "--new-key": "as --mode new_key: for receivers that remember the old key wrongly", ...WAIT },
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
  const body = { ...input, ...(options.newKey === true && { mode: "new_key" as const }) };
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
  const { redrive_id: id, counts, version, mode } = planned;
  showRedrive(asking.io, planned);
  const messages = plural(counts.selected - counts.skipped, "message");
  const verb = `${mode.charAt(0).toUpperCase()}${mode.slice(1)}`;
  try {
    await confirmed(asking.io, mode in DONE ? `${verb} ${messages}?` : `Put ${messages} back?`);
  } catch (error) {
    await ask(asking, "cancelRedrive", { id, reason: "not confirmed" });
    throw error;
  }
  return ask(asking, "resumeRedrive", { id, version });
}

function showRedrive(io: Io, one: Redrive): void {
  const filter = Object.entries(one.select).filter(([name, value]) => value !== null && !/^(limit|generation_max)$/.test(name));
  const words = (entries: readonly [string, unknown][]) => entries.map(([name, value]) => `${name} ${String(value)}`).join(", ");
  sayFields(io, {
    redrive: one.redrive_id,
    messages: one.counts.selected,
    select: words(filter),
    mode: one.mode,
    plan: words(Object.entries(one.plan ?? {})),
    reason: one.reason,
    actor: one.actor,
    "left out": numbers(one.left_out).join(", "),
    groups: one.groups.length > 1 ? numbers(one.verdicts).join(", ") : null,
    why: one.status_reason,
  });
  say(io, `${progressLine(one)}${probeWords(one)}`);
  listGroups(io, one, "Groups that do not heal:", ["failed", "inconclusive"]);
}

function listGroups(io: Io, { groups }: Redrive, title: string, verdicts: readonly Group["verdict"][]): void {
  const judged = groups.filter(({ verdict }) => verdicts.includes(verdict));
  if (groups.length > 1) listBelow(io, groupList, judged, title);
}

/** Those that are none are not said. */
const numbers = (some: Readonly<Record<string, number>>): string[] =>
  Object.entries(some).flatMap(([name, n]) => (n > 0 ? [`${n} ${name.replaceAll("_", " ")}`] : []));

/** How many are done, as their mode means it. */
function doneOf({ mode, counts: { healed, sent } }: Redrive): { readonly done: number; readonly word: string } {
  const word = DONE[mode];
  return word === undefined ? { done: healed, word: "healed" } : { done: healed + sent, word };
}

/** One line: how far it is, how fast, what became of the messages, and which receiver they wait for. */
function progressLine(one: Redrive): string {
  const { status, mode, counts, rate_per_second, eta_seconds } = one;
  const { selected, failed, skipped, sent, waiting } = counts;
  const { done, word } = doneOf(one);
  const progress = mode in DONE ? 1 - waiting / Math.max(1, selected) : one.progress;
  const full = Math.round(Math.min(1, Math.max(0, progress)) * BAR_CHARS);
  const others = numbers({ failed, skipped, under_way: mode in DONE ? 0 : sent, waiting });
  const parts = [`${done} of ${selected} ${word}`, ...others];
  if (eta_seconds !== null) parts.push(`${Math.round(rate_per_second * 10) / 10} a second, ${eta_seconds} s to go`);
  const bar = `[${"#".repeat(full)}${".".repeat(BAR_CHARS - full)}]`;
  return `${bar} ${String(Math.floor(progress * 100)).padStart(3)}% ${status}: ${parts.join(", ")}${downWords(one)}`;
}

function downWords({ held_receivers: [first, ...more] }: Redrive): string {
  if (first === undefined) return "";
  const whose = first.tenant_id === null ? "" : ` for tenant ${first.tenant_id}`;
  const others = more.length > 0 ? `, and ${more.length} more` : "";
  return `; the receiver of ${first.topic}${whose} is down (${first.reason ?? "no reason known"})${others}`;
}

/** Changes all the time, so it is no part of the line. */
function probeWords({ held_receivers: [first] }: Redrive): string {
  if (first === undefined) return "";
  const inMs = Date.parse(first.next_probe_at) - systemClock.wallMs();
  return inMs > 0 ? `, next probe in ${Math.ceil(inMs / 1_000)} s` : ", being probed now";
}

/** What needs no receiver has ended once all of it was touched; what is only watched, as soon as it was begun. */
function hasEnded({ status, mode, counts }: Redrive): boolean {
  return ENDED.includes(status) || mode === "watch" || (status === "running" && mode in DONE && counts.waiting === 0);
}

/** Until it has ended. Done without a failure is 0, everything else is for a person to look at. What is shown in between depends on who reads. */
export async function watched(asking: Conversation, id: string): Promise<ExitCode> {
  const { io, json } = asking;
  let before = "";
  /** Since when nothing moved and nobody had it. */
  let stillMs: number | null = null;
  let warned = false;
  for (;;) {
    const { value, text } = await ask(asking, "getRedrive", { id });
    const line = progressLine(value);
    const moved = line !== before;
    before = line;
    if (!json && (moved || io.tty)) io.out(`${io.tty ? "\r\u001b[K" : ""}${line}${probeWords(value)}${io.tty ? "" : "\n"}`);
    if (hasEnded(value)) {
      if (!json && io.tty) io.out("\n");
      tell(asking, text, () => sayEnd(io, value));
      return (value.status === "done" || value.mode in DONE) && value.counts.failed === 0 ? EXIT.ok : EXIT.failed;
    }
    const nowMs = systemClock.monotonicMs();
    const carried = value.status === "running" && value.runner !== null;
    stillMs = moved || carried ? null : (stillMs ?? nowMs);
    if (!warned && stillMs !== null && nowMs - stillMs > STILL_MS && !(await anyCarried(asking, value))) {
      warned = true;
      complain(io, `${io.tty ? "\n" : ""}makegood: ${stillWords(value)}`);
    }
    await sleep(systemClock, LOOK_MS);
  }
}

/** Who is busy with others comes to this one later. */
async function anyCarried(asking: Conversation, { status }: Redrive): Promise<boolean> {
  if (status !== "running") return false;
  const { value } = await ask(asking, "listRedrives", { status, limit: 100 });
  return value.data.some(({ runner }) => runner !== null);
}

function stillWords({ status, redrive_id }: Redrive): string {
  if (status === "paused") return `it is paused: makegood redrive resume ${redrive_id}`;
  if (status === "planned") return `it is only planned: makegood redrive resume ${redrive_id} starts it`;
  return "no process carries it out: a running `makegood serve` or `makegood work` would, is one there?";
}

function sayEnd(io: Io, one: Redrive): void {
  const { status, status_reason, counts, redrive_id: id, mode } = one;
  const { failed, skipped, selected } = counts;
  const { done, word } = doneOf(one);
  const touched =
    mode in DONE
      ? [`${done} ${word}`, ...numbers({ failed, skipped })]
      : [`${done} of ${plural(selected, "message")} healed`, `${failed} failed`, `${skipped} skipped`];
  const why = status_reason === null ? "" : ` (${status_reason})`;
  say(io, `redrive ${id} is ${mode in DONE ? "done" : status}: ${touched.join(", ")}${why}`);
  listGroups(io, one, "Groups that failed:", ["failed"]);
  if (failed > 0) say(io, `  what failed: makegood redrive items ${id} --state failed`);
  if (status === "stopped")
    say(io, `  try those again: makegood redrive resume ${id}; leave them: makegood redrive cancel ${id}`);
}
