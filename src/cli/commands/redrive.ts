/**
 * `makegood redrive start|list|status|items|pause|resume|cancel`. On a terminal `start` freezes the list first, shows it, and asks.
 */
import { type Command, Option } from "commander";
import type { Api } from "../api-on.ts";
import { ask, askAndShow, conversation, part, queryOf } from "../ask.ts";
import { confirmed } from "../confirm.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { age, fittedTable, plural, sayFields } from "../fitted.ts";
import { integer } from "../integer.ts";
import { complain, type Io, printJson, say } from "../io.ts";
import type { ListJson, RedriveItemJson, RedriveJson } from "../json-types.ts";
import { exitOf, follow, progressLine, sayEnd } from "../progress.ts";
import type { CommandContext, Run } from "../run.ts";
import { type PlanOptions, planBody, planOptions } from "./redrive-plan.ts";

const REDRIVES = "/api/v1/redrives";
const STATUSES = ["planned", "running", "paused", "stopped", "cancelled", "done"];
const STATES = ["waiting", "sent", "healed", "failed", "skipped"];

interface StartOptions extends PlanOptions {
  readonly group?: number;
  readonly topic?: string;
  readonly tenantId?: string;
  readonly errorCode?: string;
  readonly id?: string[];
  readonly limit?: number;
  readonly reason: string;
  readonly key?: string;
  readonly newKey?: boolean;
  readonly generationMax?: number;
  readonly elsewhere?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly confirm?: number;
  readonly wait?: boolean;
}

export function redriveCommand(program: Command, run: Run): void {
  const redrive = program.command("redrive").description("put many dead letters back as one careful operation");
  const start = redrive
    .command("start")
    .description("freeze the list of dead letters that fit, show it, ask, and begin")
    .option("--group <group>", "of this group", integer)
    .option("--topic <topic>")
    .option("--tenant-id <tenant>")
    .option("--error-code <code>")
    .option("--id <message...>", "exactly these")
    .option("--limit <n>", "so many at most, the oldest first", integer)
    .requiredOption("--reason <text>", "why; it becomes part of every message's history")
    .option("--key <key>", "two starts with one key are one redrive")
    .option("--new-key", "as new messages under new keys: only for receivers that remember the old key wrongly")
    .option("--generation-max <n>", "also what was replayed so often already", integer)
    .option("--elsewhere", "functions of other processes deliver these topics: do not insist on a sink in this one")
    .option("--dry-run", "only freeze and show it; `redrive resume` begins")
    .option("--yes", "do not ask")
    .option("--confirm <n>", "do not ask, and refuse unless it is so many messages", integer)
    .option("--wait", "follow it to its end; exit code 1 if anything failed");
  planOptions(start)
    .addHelpText(
      "after",
      '\nExample:\n  $ makegood redrive start --group 3 --reason "billing is back" --canary 10 --rate 100 --wait',
    )
    .action((options: StartOptions) => conversation(run, (context, api) => startOne(context, api, options)));
  looking(redrive, run);
  moving(redrive, run, "pause", "send no more until it is resumed; what is under way goes on");
  moving(redrive, run, "resume", "go on, or begin what was only planned");
  moving(redrive, run, "cancel", "end it; what was not sent stays a dead letter");
}

function looking(redrive: Command, run: Run): void {
  redrive
    .command("list")
    .description("newest first")
    .addOption(new Option("--status <status>").choices(STATUSES))
    .option("--limit <n>", "how many at most", "20")
    .option("--cursor <cursor>", "where the page before ended")
    .action(({ status, limit, cursor }: { status?: string; limit: string; cursor?: string }) =>
      conversation(run, (context, api) =>
        askAndShow<ListJson<RedriveJson>>(context, api, ["GET", `${REDRIVES}${queryOf({ status, limit, cursor })}`], (page) =>
          showRedrives(context.io, page),
        ),
      ),
    );
  redrive
    .command("status [redrive]")
    .description("how far it is; without an id, the latest ones")
    .option("--watch", "follow it to its end; exit code 1 if anything failed")
    .action((id: string | undefined, { watch }: { watch?: boolean }) =>
      conversation(run, async (context, api) => {
        if (id === undefined) {
          return askAndShow<ListJson<RedriveJson>>(context, api, ["GET", `${REDRIVES}?limit=20`], (page) =>
            showRedrives(context.io, page),
          );
        }
        if (watch === true) return watched(context, api, id);
        return askAndShow<RedriveJson>(context, api, ["GET", `${REDRIVES}/${part(id)}`], (one) => showRedrive(context.io, one));
      }),
    );
  redrive
    .command("items <redrive>")
    .description("message by message, in order")
    .addOption(new Option("--state <state>").choices(STATES))
    .option("--limit <n>", "how many at most", "50")
    .option("--cursor <cursor>", "where the page before ended")
    .action((id: string, { state, limit, cursor }: { state?: string; limit: string; cursor?: string }) =>
      conversation(run, (context, api) => {
        const path = `${REDRIVES}/${part(id)}/items${queryOf({ state, limit, cursor })}`;
        return askAndShow<ListJson<RedriveItemJson>>(context, api, ["GET", path], ({ data, next_cursor }) => {
          const rows = data.map((item) => [String(item.n), item.message_id, item.state, item.reason ?? ""]);
          fittedTable(context.io, ["n", "message", "state", "reason"], rows, 36);
          if (next_cursor !== null) say(context.io, "", `more: --cursor ${next_cursor}`);
        });
      }),
    );
}

function moving(redrive: Command, run: Run, move: "pause" | "resume" | "cancel", description: string): void {
  redrive
    .command(`${move} <redrive>`)
    .description(description)
    .option("--reason <text>", "why; it becomes part of the record")
    .option("--if-version <n>", "refuse if it has moved on since", integer)
    .action((id: string, { reason, ifVersion }: { reason?: string; ifVersion?: number }) =>
      conversation(run, (context, api) =>
        askAndShow<RedriveJson>(
          context,
          api,
          ["POST", `${REDRIVES}/${part(id)}/${move}`, { reason, version: ifVersion }],
          (one) => say(context.io, `redrive ${one.redrive_id} is ${one.status}`),
        ),
      ),
    );
}

async function startOne(context: CommandContext, api: Api, options: StartOptions): Promise<ExitCode> {
  const { io, json } = context;
  const select = {
    group_id: options.group,
    topic: options.topic,
    tenant_id: options.tenantId,
    error_code: options.errorCode,
    ids: options.id,
    limit: options.limit,
  };
  const body = {
    select,
    mode: options.newKey === true ? "new_key" : undefined,
    reason: options.reason,
    idempotency_key: options.key,
    generation_max: options.generationMax,
    elsewhere: options.elsewhere,
    confirm: options.confirm,
    ...planBody(options),
  };
  const sure = options.yes === true || options.confirm !== undefined || options.dryRun === true;
  if (!sure && !(io.tty && !json)) {
    complain(io, "makegood: no terminal to ask at: add --yes, --confirm with the number of messages you expect, or --dry-run");
    return EXIT.usage;
  }
  const made = await ask<RedriveJson>(
    context,
    api,
    "POST",
    REDRIVES,
    sure ? { ...body, dry_run: options.dryRun } : { ...body, dry_run: true },
  );
  if (!made.ok) return made.exit;
  const started = sure ? made : await afterAsking(context, api, made.value);
  if (!started.ok) return started.exit;
  const { redrive_id, status } = started.value;
  if (options.wait === true && status !== "planned") return watched(context, api, redrive_id);
  if (json) printJson(io, started.text);
  else sayStarted(io, started.value);
  return EXIT.ok;
}

/** The list is frozen already, so what is begun is exactly what was shown. */
async function afterAsking(context: CommandContext, api: Api, planned: RedriveJson) {
  const { io } = context;
  showRedrive(io, planned);
  const path = `${REDRIVES}/${part(planned.redrive_id)}`;
  const { selected, skipped } = planned.counts;
  const answer = await confirmed(io, {}, `Put ${plural(selected - skipped, "message")} back?`);
  if (answer !== "no") return ask<RedriveJson>(context, api, "POST", `${path}/resume`, { version: planned.version });
  const cancelled = await ask<RedriveJson>(context, api, "POST", `${path}/cancel`, { reason: "not confirmed" });
  return { ok: false as const, exit: cancelled.ok ? EXIT.usage : cancelled.exit };
}

async function watched(context: CommandContext, api: Api, id: string): Promise<ExitCode> {
  const ended = await follow(context, api, id);
  if (!ended.ok) return ended.exit;
  if (context.json) printJson(context.io, ended.text);
  else sayEnd(context.io, ended.value);
  return exitOf(ended.value);
}

function sayStarted(io: Io, { redrive_id, status, counts }: RedriveJson): void {
  say(io, `redrive ${redrive_id} is ${status}: ${plural(counts.selected, "message")}`);
  if (status === "planned") say(io, `  begin: makegood redrive resume ${redrive_id}`);
  else say(io, `  follow it: makegood redrive status ${redrive_id} --watch`);
}

function showRedrives(io: Io, { data, next_cursor }: ListJson<RedriveJson>): void {
  const rows = data.map((one) => [
    one.redrive_id,
    one.status,
    `${one.counts.healed}/${one.counts.selected}`,
    String(one.counts.failed),
    age(one.created_at),
    one.reason,
  ]);
  fittedTable(io, ["redrive", "status", "healed", "failed", "ago", "reason"], rows, 36);
  if (next_cursor !== null) say(io, "", `more: --cursor ${next_cursor}`);
}

function showRedrive(io: Io, one: RedriveJson): void {
  const filter = Object.entries(one.select).filter(
    ([name, value]) => value !== null && name !== "limit" && name !== "generation_max",
  );
  const plan = one.plan !== null && typeof one.plan === "object" ? Object.entries(one.plan) : [];
  sayFields(io, {
    redrive: one.redrive_id,
    messages: one.counts.selected,
    select: filter.map(([name, value]) => `${name} ${String(value)}`).join(", "),
    mode: one.mode,
    plan: plan.map(([name, value]) => `${name} ${String(value)}`).join(", "),
    reason: one.reason,
    actor: one.actor,
    "left out": one.counts.skipped > 0 && one.status === "planned" ? `${one.counts.skipped}: replayed often enough` : null,
    why: one.status_reason,
  });
  say(io, progressLine(one));
}
