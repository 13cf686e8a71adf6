/**
 * From what a caller gives to a message: its fields and its payload are checked, the payload is printed once (I8) and the id is made before
 * anything is tried. Throws the one error class with what is wrong.
 */
import { MakegoodError } from "../message/errors.ts";
import type { NewMessage } from "../message/message.ts";
import { issueText, type StandardResult } from "../message/standard-schema.ts";
import type { TopicRecord } from "../message/topic.ts";
import { checkFields, type MessageFields, parsePayloadText, payloadHash, payloadText } from "../message/validate.ts";
import type { AnyTopic } from "../topic/topic.ts";
import type { TopicTable } from "../topic/topic-table.ts";

/** A message whose payload is already text: stored and delivered byte for byte. */
export interface TextMessage extends MessageFields {
  readonly topic: string;
  readonly payloadText: string;
  readonly [CHECKED]?: true;
}

/** Set where this process has checked fields and payload while it read them: the API scans each body once, and once is enough. */
export const CHECKED: unique symbol = Symbol("checked");

export type Made = NewMessage | Promise<NewMessage>;

export interface MessageBuilder {
  fromValue(topic: AnyTopic | string, payload: unknown, fields: MessageFields): Made;
  fromText(message: TextMessage): Made;
  /** For a topic that nobody can be asked about now: what the topic would say of the message is left as it came. */
  unasked(topic: string, payload: unknown, fields: MessageFields & { readonly payloadText?: string | undefined }): NewMessage;
}

export interface MessageBuilderOptions {
  readonly topics: TopicTable;
  readonly declared: ReadonlyMap<string, AnyTopic>;
  readonly ids: () => string;
}

type Verdict = StandardResult<unknown> | Promise<StandardResult<unknown>> | null;
type TopicRules = Pick<TopicRecord, "name" | "ordering" | "schemaVersion">;

export function createMessageBuilder({ topics, declared, ids }: MessageBuilderOptions): MessageBuilder {
  const schemaOf = (topic: AnyTopic | string) => (typeof topic === "string" ? declared.get(topic)?.schema : topic.schema) ?? null;

  /** Without a promise wherever nothing has to be asked: in a batch of a thousand they are what costs. */
  function build(topic: AnyTopic | string, text: string, value: unknown, fields: MessageFields): Made {
    const name = typeof topic === "string" ? topic : topic.name;
    const schema = schemaOf(topic);
    const verdict = schema ? schema["~standard"].validate(value) : null;
    const known = topics.known(name);
    if (known && !(verdict instanceof Promise)) {
      if (verdict !== null) checkVerdict(verdict);
      return newMessage(known, text, fields);
    }
    return buildLater(name, text, fields, verdict);
  }

  async function buildLater(name: string, text: string, fields: MessageFields, verdict: Verdict): Promise<NewMessage> {
    const result = await verdict;
    if (result) checkVerdict(result);
    const known = await topics.find(name);
    if (!known) throw new MakegoodError("unknown_topic", `there is no topic ${name}: declare it first`, { topic: name });
    return newMessage(known, text, fields);
  }

  function newMessage(topic: TopicRules, payload: string, fields: MessageFields): NewMessage {
    return {
      id: fields.id ?? ids(),
      topic: topic.name,
      tenantId: fields.tenantId ?? null,
      key: fields.key ?? null,
      payload,
      payloadHash: fields.key == null ? "" : payloadHash(payload),
      delayMs: fields.delayMs ?? 0,
      priority: fields.priority ?? 0,
      orderingKey: topic.ordering === "none" ? null : (fields.orderingKey ?? null),
      traceparent: fields.traceparent ?? null,
      schemaVersion: topic.schemaVersion,
    };
  }

  return {
    fromValue(topic, payload, fields) {
      checkFields(fields);
      return build(topic, payloadText(payload), payload, fields);
    },
    fromText(message) {
      const { topic, payloadText: text } = message;
      const checked = message[CHECKED] === true;
      if (!checked) checkFields(message);
      const value = checked && schemaOf(topic) === null ? undefined : parsePayloadText(text);
      return build(topic, text, value, message);
    },
    unasked(name, payload, fields) {
      checkFields(fields);
      return newMessage({ name, ordering: "key", schemaVersion: null }, fields.payloadText ?? payloadText(payload), fields);
    },
  };
}

/** The schema judges; what it makes of the payload goes to the handler, the text that was given is stored. */
function checkVerdict(result: StandardResult<unknown>): void {
  if (!result.issues) return;
  const issues = result.issues.map(issueText);
  const first = issues[0] ?? { path: "", message: "no reason given" };
  const where = first.path === "" ? "" : `${first.path}: `;
  const text = `the payload does not fit the topic's schema: ${where}${first.message}`;
  throw new MakegoodError("payload_rejected_by_schema", text, { issues });
}
