/**
 * `makegood enqueue <topic>`, `messages list|show|payload|replay|edit|resolve|discard|cancel|reschedule`, and `store acknowledge-loss`. A payload's
 * text goes through unchanged (I8).
 */
import type { Command } from "commander";
import type { AnswerOf } from "../../contract/table.ts";
import { errorText } from "../../message/errors.ts";
import { checkJson, cursorOn, eachMember, takeValue } from "../../message/json-scanner.ts";
import { isOwnTopic } from "../../presets/own-topics.ts";
import { ask, type Conversation } from "../conversation.ts";
import { EXIT, Stop } from "../exit-code.ts";
import { type Io, readInput, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, sayFields, wrapped } from "../table.ts";

type Message = AnswerOf<"listMessages">["data"][number];
type Detail = AnswerOf<"getMessage">;

export function enqueueCommand(program: Command, run: Run): void {
  routeCommand(program, run, "enqueue", {
    name: "enqueue",
    args: { topic: "<topic>" },
    about: "hand over one message; without --payload or --file it is read from standard input",
    example: `enqueue billing/finalize --payload '{"charge":1}' --key charge-1`,
    options: PAYLOAD_OPTIONS,
    before: async (asking, fields, options) => ({ body: await payloadBody(asking.io, fields, options) }),
    show(io, made) {
      if ("id" in made) say(io, made.inserted ? `accepted ${made.id}` : `already accepted ${made.id}`);
    },
  });
}

export function messagesCommand(program: Command, run: Run): void {
  const messages = program.command("messages").description("look at messages and decide about dead letters");
  routeCommand(messages, run, "listMessages", {
    name: "list",
    about: "newest first; of Makegood's own topics only dead letters",
    options: { "--all": "all messages of Makegood's own topics, too" },
    show: (io, page, { input, options }) => showPage(io, page, options.all === true || input.topic !== undefined),
  });
  routeCommand(messages, run, "getMessage", { name: "show", show: (io, message, { text }) => show(io, message, text) });
  // Without a line break of ours behind it: these are the bytes.
  routeCommand(messages, run, "getPayload", {
    name: "payload",
    show: (io, _, { text }) => (io.tty ? say(io, text) : io.out(text)),
  });
  routeCommand(messages, run, "replayMessage", { name: "replay", show: sayState });
  routeCommand(messages, run, "editMessage", {
    name: "edit",
    example: `messages edit <id> --payload '{"charge":"ch_1"}' --reason "a typo in the charge"`,
    options: PAYLOAD_OPTIONS,
    before: async (asking, { id: _, ...fields }, options) => ({ body: await payloadBody(asking.io, fields, options) }),
    show: (io, made, { input }) => say(io, `${input.id} goes on as ${made.id}`),
  });
  routeCommand(messages, run, "resolveMessage", { name: "resolve", show: sayState });
  routeCommand(messages, run, "discardMessage", { name: "discard", show: sayState });
  routeCommand(messages, run, "cancelMessage", {
    ...byKey,
    name: "cancel",
    example: "messages cancel --topic billing/finalize --key charge-1 --reason refunded",
  });
  routeCommand(messages, run, "rescheduleMessage", {
    ...byKey,
    name: "reschedule",
    example: "messages reschedule <id> --delay-ms 60000 --reason later",
  });
}

export function storeCommand(program: Command, run: Run): void {
  const store = program.command("store").description("what a person says about the store");
  const show = (io: Io): void => say(io, "the loss is acknowledged");
  routeCommand(store, run, "acknowledgeLoss", { name: "acknowledge-loss", show });
}

const PAYLOAD_OPTIONS = {
  "--payload <json>": "the payload, as JSON",
  "--file <path>": "a file that holds the payload; - is standard input (the default)",
};

/** The body of a request: the fields, and the payload as it is. It must be one value and nothing else before it is spliced in. */
async function payloadBody(io: Io, fields: object, options: Readonly<Record<string, unknown>>): Promise<string> {
  const { payload, file } = options as { readonly payload?: string; readonly file?: string };
  if (payload !== undefined && file !== undefined) throw new Stop("give either --payload or --file");
  const text = (payload ?? (await readInput(io, file, "payload"))).trim();
  try {
    checkJson(text, "invalid_payload");
  } catch (error) {
    throw new Stop(`the payload is ${errorText(error)}`);
  }
  const members = JSON.stringify(fields);
  return `${members.slice(0, -1)}${members === "{}" ? "" : ","}"payload":${text}}`;
}

/** A caller knows the key that it gave, a person the id that a list shows. */
const byKey = {
  args: { id: "[id]" },
  options: {
    "--key <key>": "instead of the id: the key it has",
    "--topic <topic>": "the topic of that key",
    "--tenant-id <id>": "the tenant of that key, where it has one",
  },
  async before<I extends { readonly id: string | number }>(
    asking: Conversation,
    input: I,
    options: Readonly<Record<string, unknown>>,
  ) {
    return { input: { ...input, id: (input.id as string | number | undefined) ?? (await idOfKey(asking, options)) } };
  },
  show: sayState,
};

async function idOfKey(asking: Conversation, options: Readonly<Record<string, unknown>>): Promise<string> {
  const { key, topic, tenantId } = options as Readonly<Record<string, string | undefined>>;
  if (key === undefined || topic === undefined) throw new Stop("which message? Give its id, or --topic and --key");
  const { value } = await ask(asking, "listMessages", { topic, key, tenant_id: tenantId });
  const pending = value.data.filter(({ status }) => status === "pending");
  const [first, ...more] = pending.length > 0 ? pending : value.data;
  if (first === undefined) throw new Stop(`topic ${topic} has no message with the key ${key}`, EXIT.notFound);
  if (more.length === 0) return first.id;
  throw new Stop(`${more.length + 1} messages of ${topic} have the key ${key}: add --tenant-id, or give the id`, EXIT.conflict);
}

type Standing = Pick<Message, "status" | "resolution" | "held_reason">;

function statusOf({ status, resolution, held_reason }: Standing): string {
  const more = resolution ?? held_reason;
  return more === null ? status : `${status} (${more})`;
}

function sayState(io: Io, message: Standing & { readonly id: string }): void {
  say(io, `${message.id} is now ${statusOf({ ...message, held_reason: null })}`);
}

const messageList = listing<Message>({
  id: "id",
  topic: "topic",
  status: statusOf,
  tries: "attempts",
  created: "created_at",
  key: "key",
  "last error": "last_error",
});

function showPage(io: Io, { data, next_cursor }: AnswerOf<"listMessages">, all: boolean): void {
  const shown = data.filter(({ topic, status }) => all || status === "dead" || !isOwnTopic(topic));
  messageList(io, { data: shown, next_cursor });
  const hidden = data.length - shown.length;
  if (hidden > 0) say(io, "", ...wrapped(io, `${hidden} of Makegood's own topics are hidden: --all shows them`, ""));
}

const attempts = listing<Detail["timeline"][number]>({
  attempt: "attempt",
  outcome: "outcome",
  counted: "counted",
  at: "at",
  took: ({ duration_ms: ms }) => (ms === null ? "" : `${ms} ms`),
  code: "code",
  error: "error",
});
const interventions = listing<Detail["provenance"][number]>({ at: "at", actor: "actor", action: "action", reason: "reason" });

/** The payload is cut out as text: parsing it would lose big numbers and duplicate keys. */
function show(io: Io, { timeline, provenance, pending_reason: why, payload: _, ...rest }: Detail, text: string): void {
  let payload = "";
  const cursor = cursorOn(text, "invalid_payload");
  eachMember(cursor, (name) => {
    const value = takeValue(cursor);
    if (name === "payload") payload = value;
  });
  sayFields({ ...io, width: null }, { ...rest, pending_reason: why && `${why.code}: ${why.reason}` });
  if (timeline.length > 0) {
    say(io, "");
    attempts(io, { data: timeline });
  }
  if (provenance.length > 0) {
    say(io, "");
    interventions(io, { data: provenance });
  }
  say(io, "", "payload", payload);
}
