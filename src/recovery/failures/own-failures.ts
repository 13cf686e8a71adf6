/**
 * Failures of our own messages as something to ingest: what died, and what fails often without dying. Both carry the same ledger
 * key, so a message counts once per generation and group, in either order.
 */
import type { MessageView } from "../../message/message.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { payloadHash } from "../../message/validate.ts";
import type { TopicStore } from "../../store/topics.ts";
import { mask } from "../fingerprint/mask.ts";
import { cleanName, cleanText, keptText } from "./clean-text.ts";
import type { DeadFailure } from "./failure.ts";
import type { Incoming } from "./intake.ts";

/** The receiver of a topic, without what varies: its kind and, where it has a URL, the host; masked, as in a report. */
export function sinkName(record: Pick<TopicRecord, "sink"> | null): string {
  if (record === null) return "unknown";
  const { kind, url } = record.sink;
  if (url === undefined) return kind;
  try {
    return mask(cleanName(`${kind} ${new URL(url).host}`));
  } catch {
    return kind;
  }
}

/** Null where the topic is gone. Asked once per batch and topic. */
export async function sinkNames(topics: Pick<TopicStore, "get">, names: Iterable<string>): Promise<Map<string, string>> {
  const sinks = new Map<string, string>();
  for (const name of new Set(names)) sinks.set(name, sinkName(await topics.get(name)));
  return sinks;
}

/** `version`: of the program that ingests it, which is the one that failed wherever all processes run the same. */
export function incomingOfDead(dead: DeadFailure, sink: string, version: string | null = null): Incoming {
  const text = cleanText(dead.error ?? "");
  const { id, generation, attempts, topic, tenantId } = dead;
  return {
    failure: { topic, sink, errorCode: cleanName(dead.code ?? "") || "unknown", errorMessage: text },
    requestKey: (fingerprint) => `message:${id}:${generation}:${fingerprint}`,
    payloadHash: payloadHash(`${id}:${generation}`),
    source: "message",
    failureMatchId: null,
    message: { id, generation, attempts },
    tenantId,
    skillId: null,
    errorMessage: keptText(text),
    stackTrace: null,
    failurePayload: null,
    version,
    evaluate: true,
  };
}

/** A message that failed often, as if it had died; null when it did since, or was delivered: then it is no business of ours. */
export function failingOf(message: MessageView | null): DeadFailure | null {
  if (message === null || message.status === "delivered" || message.status === "dead") return null;
  const { id, generation, attempts, topic, tenantId, lastCode, lastError } = message;
  return { id, generation, attempts, topic, tenantId, code: lastCode, error: lastError };
}
