/**
 * `makegood messages list|show|replay|edit|resolve|discard`.
 */
import { type Command, Option } from "commander";
import { cursorOn, eachMember, takeValue } from "../../message/json-scanner.ts";
import { refusedAnswer, withApi } from "../api.ts";
import type { Api } from "../api-on.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { integer } from "../integer.ts";
import { type Io, printJson, say, table } from "../io.ts";
import type { AttemptJson, MessageJson, ProvenanceJson } from "../json-types.ts";
import type { Run } from "../run.ts";
import { messageEdit } from "./message-edit.ts";

interface ListOptions {
  readonly status?: string;
  readonly resolution?: string;
  readonly topic?: string;
  readonly tenantId?: string;
  readonly key?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

export function messagesCommand(program: Command, run: Run): void {
  const messages = program.command("messages").description("look at messages and decide about dead letters");
  messages
    .command("list")
    .description("newest first")
    .addOption(new Option("--status <status>").choices(["pending", "processing", "delivered", "dead"]))
    .addOption(new Option("--resolution <resolution>", "of dead letters").choices(["open", "resolved", "discarded"]))
    .option("--topic <topic>")
    .option("--tenant-id <tenant>")
    .option("--key <key>")
    .option("--limit <n>", "how many at most", "50")
    .option("--cursor <cursor>", "where the page before ended")
    .action((options: ListOptions) => run(({ io, config, json }) => withApi(io, config, (api) => list(io, api, options, json))));
  messages
    .command("show <id>")
    .description("one message with its payload, its attempts and what people did to it")
    .action((id: string) =>
      run(({ io, config, json }) =>
        withApi(io, config, async (api) => {
          const answer = await api.call("GET", `/api/v1/messages/${encodeURIComponent(id)}`);
          const refused = refusedAnswer(io, answer, json);
          if (refused !== null) return refused;
          if (json) printJson(io, answer.text);
          else show(io, answer.text);
          return EXIT.ok;
        }),
      ),
    );
  intervention(messages, run, "replay", "put a dead letter or a held message back, due now, with a new budget of attempts");
  messageEdit(messages, run);
  intervention(messages, run, "resolve", "close a dead letter that was taken care of by other means");
  intervention(messages, run, "discard", "close a dead letter, or take back a pending message: it will not be delivered");
}

function intervention(messages: Command, run: Run, action: "replay" | "resolve" | "discard", description: string): void {
  const command = messages
    .command(`${action} <id>`)
    .description(description)
    .requiredOption("--reason <text>", "why; it becomes part of the message's history")
    .option("--revision <n>", "refuse if the message has moved on since", integer)
    .action((id: string, options: { reason: string; revision?: number; force?: boolean }) =>
      run(({ io, config, json }) =>
        withApi(io, config, async (api) => {
          const { reason, revision, force } = options;
          const body = JSON.stringify({ reason, revision, force });
          const answer = await api.call("POST", `/api/v1/messages/${encodeURIComponent(id)}/${action}`, body);
          const refused = refusedAnswer(io, answer, json);
          if (refused !== null) return refused;
          if (json) printJson(io, answer.text);
          else {
            const { status, resolution } = headOf(answer.text).message;
            say(io, `${id} is now ${resolution === null ? status : `${status} (${resolution})`}`);
          }
          return EXIT.ok;
        }),
      ),
    );
  if (action === "replay") command.option("--force", "also while a copy of it is on its way to another receiver");
}

async function list(io: Io, api: Api, options: ListOptions, json: boolean): Promise<ExitCode> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...options, tenant_id: options.tenantId, tenantId: undefined })) {
    if (typeof value === "string") query.set(name, value);
  }
  const answer = await api.call("GET", `/api/v1/messages?${query}`);
  const refused = refusedAnswer(io, answer, json);
  if (refused !== null) return refused;
  if (json) {
    printJson(io, answer.text);
    return EXIT.ok;
  }
  const page = JSON.parse(answer.text) as { data: MessageJson[]; next_cursor: string | null };
  const rows = page.data.map((message) => [
    message.id,
    message.topic,
    message.held_reason === null ? message.status : `${message.status} (${message.held_reason})`,
    message.resolution ?? "",
    String(message.attempts),
    message.created_at,
    message.key ?? "",
    (message.last_error ?? "").slice(0, 80),
  ]);
  table(io, ["id", "topic", "status", "resolution", "attempts", "created", "key", "last error"], rows);
  if (page.next_cursor !== null) say(io, "", `more: --cursor ${page.next_cursor}`);
  return EXIT.ok;
}

interface Head {
  readonly message: MessageJson & { timeline?: AttemptJson[]; provenance?: ProvenanceJson[] };
  /** The exact text. */
  readonly payload: string;
}

/** The payload is cut out as text: parsing it would lose big numbers and duplicate keys. */
function headOf(text: string): Head {
  const members = new Map<string, unknown>();
  let payload = "";
  const cursor = cursorOn(text, "invalid_payload");
  eachMember(cursor, (name) => {
    const value = takeValue(cursor);
    if (name === "payload") payload = value;
    else members.set(name, JSON.parse(value));
  });
  return { message: Object.fromEntries(members) as unknown as Head["message"], payload };
}

function show(io: Io, text: string): void {
  const { message, payload } = headOf(text);
  const { timeline = [], provenance = [], pending_reason: why, ...rest } = message;
  // A server of the version before gives none.
  const fields = { ...rest, pending_reason: why ? `${why.code}: ${why.reason}` : null };
  const shown = Object.entries(fields).filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  say(io, ...shown.map(([name, value]) => `${name.padEnd(width)}  ${String(value)}`));
  if (timeline.length > 0) {
    say(io, "");
    const rows = timeline.map((one) => [
      String(one.attempt),
      one.outcome,
      one.counted ? "yes" : "no",
      one.at,
      one.duration_ms === null ? "" : `${one.duration_ms} ms`,
      one.code ?? "",
      one.error ?? "",
    ]);
    table(io, ["attempt", "outcome", "counted", "at", "took", "code", "error"], rows);
  }
  if (provenance.length > 0) {
    say(io, "");
    table(
      io,
      ["at", "actor", "action", "reason"],
      provenance.map((one) => [one.at, one.actor, one.action, one.reason ?? ""]),
    );
  }
  say(io, "", "payload", payload);
}
