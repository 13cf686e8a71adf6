/**
 * `makegood redrive start|list|status|items|pause|resume|cancel`. On a terminal `start` freezes the list first, shows it, and asks.
 */
import type { Command } from "commander";
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { confirmed, NO_TERMINAL, WAIT, YES } from "../confirm.ts";
import { type Answered, ask, askAndShow, type Conversation } from "../conversation.ts";
import { EXIT, type ExitCode, Stop } from "../exit-code.ts";
import { type Io, printJson, say } from "../io.ts";
import { progressLine, type Redrive, watched } from "../progress.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, plural, sayFields } from "../table.ts";

const REDRIVE = { id: "<redrive>" };

interface StartOptions {
  readonly newKey?: boolean;
  readonly yes?: boolean;
  readonly wait?: boolean;
}

export function redriveCommand(program: Command, run: Run): void {
  const redrive = program.command("redrive").description("put many dead letters back as one careful operation");
  routeCommand(redrive, run, "startRedrive", {
    name: "start",
    flags: { mode: null, delay_ms: "delay" },
    about: "freeze the list of dead letters that fit, show it, ask, and begin",
    example: 'redrive start --group 3 --reason "billing is back" --canary 10 --rate 100 --wait',
    options: { "--new-key": "as new messages under new keys: for receivers that remember the old key wrongly", ...YES, ...WAIT },
    act: start,
  });
  routeCommand(redrive, run, "listRedrives", { name: "list", show: redriveList });
  routeCommand(redrive, run, "getRedrive", {
    name: "status",
    args: { id: "[redrive]" },
    about: "how far it is; without an id, the latest ones",
    options: { "--watch": "follow it to its end; exit code 1 if anything failed" },
    async act(asking, { id }: { readonly id?: string | number }, { watch }) {
      if (id === undefined) return askAndShow(asking, "listRedrives", { limit: 20 }, (page) => redriveList(asking.io, page));
      if (watch === true) return watched(asking, String(id));
      return askAndShow(asking, "getRedrive", { id }, (one) => showRedrive(asking.io, one));
    },
  });
  routeCommand(redrive, run, "listRedriveItems", { name: "items", args: REDRIVE, show: itemList });
  const show = (io: Io, one: Redrive): void => say(io, `redrive ${one.redrive_id} is ${one.status}`);
  routeCommand(redrive, run, "pauseRedrive", { name: "pause", args: REDRIVE, show });
  routeCommand(redrive, run, "resumeRedrive", { name: "resume", args: REDRIVE, show });
  routeCommand(redrive, run, "cancelRedrive", { name: "cancel", args: REDRIVE, show });
}

async function start(asking: Conversation, input: InputOf<"startRedrive">, options: StartOptions): Promise<ExitCode> {
  const { io, json } = asking;
  const body = { ...input, mode: options.newKey === true ? ("new_key" as const) : undefined };
  const sure = options.yes === true || body.confirm !== undefined || body.dry_run === true;
  if (!sure && !(io.tty && !json))
    throw new Stop(`${NO_TERMINAL}, --confirm with the number of messages you expect, or --dry-run`);
  const made = await ask(asking, "startRedrive", sure ? body : { ...body, dry_run: true });
  const { value, text } = sure ? made : await afterAsking(asking, made.value);
  if (options.wait === true && value.status !== "planned") return watched(asking, value.redrive_id);
  if (json) printJson(io, text);
  else {
    say(io, `redrive ${value.redrive_id} is ${value.status}: ${plural(value.counts.selected, "message")}`);
    if (value.status === "planned") say(io, `  begin: makegood redrive resume ${value.redrive_id}`);
    else say(io, `  follow it: makegood redrive status ${value.redrive_id} --watch`);
  }
  return EXIT.ok;
}

/** The list is frozen already, so what is begun is exactly what was shown. */
async function afterAsking(asking: Conversation, planned: Redrive): Promise<Answered<Redrive>> {
  const { redrive_id: id, counts, version } = planned;
  showRedrive(asking.io, planned);
  try {
    await confirmed(asking.io, {}, `Put ${plural(counts.selected - counts.skipped, "message")} back?`);
  } catch (error) {
    await ask(asking, "cancelRedrive", { id, reason: "not confirmed" });
    throw error;
  }
  return ask(asking, "resumeRedrive", { id, version });
}

const redriveList = listing<Redrive>({
  redrive: "redrive_id",
  status: "status",
  healed: ({ counts }) => `${counts.healed}/${counts.selected}`,
  failed: ({ counts }) => counts.failed,
  ago: "created_at",
  reason: "reason",
});

type Item = AnswerOf<"listRedriveItems">["data"][number];
const itemList = listing<Item>({ n: "n", message: "message_id", state: "state", reason: "reason" }, ["message"]);

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
