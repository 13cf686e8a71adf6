/** `makegood enqueue`, `messages`, `store` and `topics`. A payload's text goes through unchanged (I8). */
import type { AnswerOf } from "../../contract/table.ts";
import { errorText } from "../../message/errors.ts";
import { checkJson, cursorOn, eachMember, takeValue } from "../../message/json-scanner.ts";
import { isOwnTopic } from "../../presets/own-topics.ts";
import { type Conversation, family, type Options } from "../conversation.ts";
import { EXIT, type Io, readInput, Stop, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listBelow, listing, listOthers, plural, sayFields, sayJson } from "../table.ts";

type Message = AnswerOf<"listMessages">["data"][number];
type Detail = AnswerOf<"getMessage">;

const statusOf = ({ status, resolution, held_reason }: Message): string => {
  const more = resolution ?? held_reason;
  return more === null ? status : `${status} (${more})`;
};
const sayState = (io: Io, message: Message): void =>
  say(io, `${message.id} is now ${statusOf({ ...message, held_reason: null })}`);

const messageList = listing<Message>(["id", "topic", ["status", statusOf], "attempts", "created_at", "key", "last_error"]);
const tookOf = ({ duration_ms: ms }: Detail["timeline"][number]): string => (ms === null ? "" : `${ms} ms`);
const attempts = listing<Detail["timeline"][number]>(["attempt", "outcome", "counted", "at", ["took", tookOf], "code", "error"]);
const interventions = listing<Detail["provenance"][number]>(["at", "actor", "action", "reason"]);

const PAYLOAD_FILE = "a file that holds the payload; - is standard input (the default)";
const withPayload = {
  options: { "--payload <json>": "the payload, as JSON", "--file <path>": PAYLOAD_FILE },
  before: payloadBody,
};

/** A caller knows the key that it gave, a person the id that a list shows. */
const byKey = {
  args: { id: "[id]" },
  options: {
    "--key <key>": "instead of the id: the key it has",
    "--topic <topic>": "the topic of that key",
    "--tenant-id <id>": "the tenant of that key, where it has one",
  },
  async before<I extends { readonly id: string | number }>(asking: Conversation, input: I, options: Options) {
    return { input: { ...input, id: (input.id as string | number | undefined) ?? (await idOfKey(asking, options)) } };
  },
  show: sayState,
};

type Topic = AnswerOf<"getTopic">;
const kindOf = ({ sink }: Topic): string => sink.kind;
const urlOf = ({ sink }: Topic): string | null => sink.url;
const topicList = listing<Topic>([["topic", "name"], ["sink", kindOf], ["state", stateOf], "source", "ordering", ["url", urlOf]]);

const topics = family("topics", "declare topics and steer them", [
  routeCommand("listTopics", {
    name: "list",
    options: { "--all": "Makegood's own topics, too" },
    show: (io, page, { options }) => listOthers(io, topicList, page, ({ name }) => options.all === true || !isOwnTopic(name)),
  }),
  routeCommand("getTopic", { name: "show", about: "one topic; its secrets are never shown", show: sayJson }),
  routeCommand("putTopic", {
    name: "set",
    // The definition is JSON as the API takes it; of its fields only a sink is worth options.
    flags: null,
    example: "topics set billing/finalize --kind http --url https://billing.example/finalize",
    options: {
      "--file <path>": "its definition as JSON, the same as the API takes; - is standard input",
      "--kind <kind>": "short for a sink of this kind (http if absent)",
      "--url <url>": "short for a sink: where it delivers",
    },
    before: async ({ io }, _, options) => ({ body: await definitionOf(io, options) }),
    show: (io, { name }) => say(io, `${name} is set`),
  }),
  routeCommand("pauseTopic", { name: "pause", show: (io, { name }) => say(io, `${name} is paused`) }),
  routeCommand("resumeTopic", { name: "resume", show: (io, { name }) => say(io, `${name} is resumed`) }),
  routeCommand("deleteTopic", {
    name: "delete",
    about: "forget a topic that has no unsettled message; asks first",
    async asks({ io, client }, { namespace, name }) {
      topicList(io, { data: [await client.getTopic({ namespace, name })] });
      return `Delete topic ${namespace}/${name}? Whatever still enqueues to it is refused from then on.`;
    },
    show: (io, _, { input }) => say(io, `${input.namespace}/${input.name} is deleted`),
  }),
]);

const CANCEL = "messages cancel --topic billing/finalize --key charge-1 --reason refunded";
const RESCHEDULE = "messages reschedule <id> --delay-ms 60000 --reason later";

export const commands = [
  routeCommand("enqueue", {
    ...withPayload,
    name: "enqueue",
    args: { topic: "<topic>" },
    about: "hand over one message; without --payload or --file it is read from standard input",
    example: `enqueue billing/finalize --payload '{"charge":1}' --key charge-1`,
    show(io, made) {
      if ("id" in made) say(io, made.inserted ? `accepted ${made.id}` : `already accepted ${made.id}`);
    },
  }),
  family("messages", "look at messages and decide about dead letters", [
    routeCommand("listMessages", {
      name: "list",
      about: "newest first; of Makegood's own topics only dead letters",
      options: { "--all": "all messages of Makegood's own topics, too" },
      show(io, page, { input, options }) {
        const all = options.all === true || input.topic !== undefined;
        listOthers(io, messageList, page, ({ topic, status }) => all || status === "dead" || !isOwnTopic(topic));
      },
    }),
    routeCommand("getMessage", { name: "show", show: (io, message, { text }) => show(io, message, text) }),
    // Without a line break of ours behind it: these are the bytes.
    routeCommand("getPayload", { name: "payload", show: (io, _, { text }) => (io.tty ? say(io, text) : io.out(text)) }),
    routeCommand("replayMessage", { name: "replay", show: sayState }),
    routeCommand("editMessage", {
      ...withPayload,
      name: "edit",
      example: `messages edit <id> --payload '{"charge":"ch_1"}' --reason "a typo in the charge"`,
      show: (io, made, { input }) => say(io, `${input.id} goes on as ${made.id}`),
    }),
    routeCommand("resolveMessage", { name: "resolve", show: sayState }),
    routeCommand("discardMessage", { name: "discard", show: sayState }),
    routeCommand("cancelMessage", { ...byKey, name: "cancel", example: CANCEL }),
    routeCommand("rescheduleMessage", { ...byKey, name: "reschedule", example: RESCHEDULE }),
  ]),
  family("store", "what a person says about the store", [
    routeCommand("acknowledgeLoss", { name: "acknowledge-loss", show: (io) => say(io, "the loss is acknowledged") }),
  ]),
  topics,
];

/** The body of a request: the fields, and the payload as it is. It must be one value and nothing else before it is spliced in. */
async function payloadBody({ io }: Conversation, { id: _, ...fields }: Readonly<Record<string, unknown>>, options: Options) {
  const { payload, file } = options as { readonly payload?: string; readonly file?: string };
  if (payload !== undefined && file !== undefined) throw new Stop("give either --payload or --file");
  const text = (payload ?? (await readInput(io, file, "payload"))).trim();
  try {
    checkJson(text, "invalid_payload");
  } catch (error) {
    throw new Stop(`the payload is ${errorText(error)}`);
  }
  const members = JSON.stringify(fields);
  return { body: `${members.slice(0, -1)}${members === "{}" ? "" : ","}"payload":${text}}` };
}

async function idOfKey({ client }: Conversation, options: Options): Promise<string> {
  const { key, topic, tenantId } = options as Readonly<Record<string, string | undefined>>;
  if (key === undefined || topic === undefined) throw new Stop("which message? Give its id, or --topic and --key");
  const { data } = await client.listMessages({ topic, key, tenant_id: tenantId });
  const pending = data.filter(({ status }) => status === "pending");
  const [first, ...more] = pending.length > 0 ? pending : data;
  if (first === undefined) throw new Stop(`topic ${topic} has no message with the key ${key}`, EXIT.notFound);
  if (more.length === 0) return first.id;
  throw new Stop(`${more.length + 1} messages of ${topic} have the key ${key}: add --tenant-id, or give the id`, EXIT.conflict);
}

/** The payload is cut out as text: parsing it would lose big numbers and duplicate keys. */
function show(io: Io, { timeline, provenance, pending_reason: why, payload: _, ...rest }: Detail, text: string): void {
  let payload = "";
  const cursor = cursorOn(text, "invalid_payload");
  eachMember(cursor, (name) => {
    const value = takeValue(cursor);
    if (name === "payload") payload = value;
  });
  sayFields({ ...io, width: null }, { ...rest, pending_reason: why && `${why.code}: ${why.reason}` });
  listBelow(io, attempts, timeline);
  listBelow(io, interventions, provenance);
  say(io, "", "payload", payload);
}

async function definitionOf(io: Io, options: Options): Promise<string> {
  const { file, kind, url } = options as Readonly<Record<string, string | undefined>>;
  if (kind === undefined && url === undefined) return readInput(io, file, "definition");
  if (file !== undefined) throw new Stop("give either --file or --kind and --url");
  return JSON.stringify({ sink: { kind: kind ?? "http", url } });
}

function stateOf({ paused, disabled_reason, breaker, held }: Topic): string {
  if (paused) return "paused";
  if (disabled_reason !== null) return "sink disabled";
  if (breaker.state !== "closed") return `breaker ${breaker.state}`;
  if (held) return `not served: ${held.code}`;
  const tenants = breaker.tenants.length;
  return tenants === 0 ? "delivering" : `delivering, ${plural(tenants, "tenant")} held`;
}
