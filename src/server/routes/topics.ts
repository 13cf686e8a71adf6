/**
 * Topics over HTTP: declare, read, list, pause, resume, delete. What the config file or code declared is read-only here.
 */

import { servedNow } from "../../client/standing.ts";
import { isTopicName } from "../../message/validate.ts";
import { BODY_BYTES, readText } from "../body.ts";
import { readTopic, topicJson } from "../contract/contract-topic.ts";
import type { FieldFault } from "../contract/fields.ts";
import { checkJson } from "../contract/payload-scanner.ts";
import { problem, type Reply } from "../contract/problem.ts";
import { type ApiRequest, type Handler, json } from "../http.ts";
import type { Kernel } from "../kernel.ts";

export interface TopicHandlers {
  readonly put: Handler;
  readonly get: Handler;
  readonly list: Handler;
  readonly remove: Handler;
  readonly pause: Handler;
  readonly resume: Handler;
}

export function topicHandlers(kernel: Kernel): TopicHandlers {
  const { topics } = kernel.mg.store;
  return {
    put: (request) => putTopic(kernel, request),
    async get(request) {
      const name = nameOf(request);
      const topic = isTopicName(name) ? await topics.get(name) : null;
      return topic ? json(200, topicJson(topic, await servedNow(kernel.mg.store))) : noSuchTopic(name);
    },
    async list(request) {
      const unknown = [...request.query.keys()];
      if (unknown.length > 0) return problem("invalid_query", `unknown parameter ${unknown[0]?.slice(0, 100)}`);
      const [records, served] = await Promise.all([topics.list(), servedNow(kernel.mg.store)]);
      return json(200, { data: records.map((topic) => topicJson(topic, served)), next_cursor: null });
    },
    async remove(request) {
      const name = nameOf(request);
      const source = kernel.abandoned(name) ? "file" : "api";
      const result = isTopicName(name) ? await topics.delete(name, source) : "not_found";
      if (result === "deleted") {
        kernel.log.info("a topic was deleted", { topic: name, actor: request.actor });
        return { status: 204, headers: {}, body: "" };
      }
      if (result === "read_only") return readOnly(name);
      if (result === "not_found") return noSuchTopic(name);
      return problem("topic_in_use", `topic ${name} has messages that are not settled: deliver, resolve or discard them first`);
    },
    pause: (request) => setPaused(kernel, request, true),
    resume: (request) => setPaused(kernel, request, false),
  };
}

async function putTopic(kernel: Kernel, request: ApiRequest): Promise<Reply> {
  const text = await readText(request, BODY_BYTES.topic);
  if (!text.ok) return text.reply;
  checkJson(text.value, "invalid_topic");
  const name = nameOf(request);
  const read = readTopic(name, JSON.parse(text.value), { checkSink: kernel.checkSink, trusted: false });
  if (!read.ok) return invalidTopic(read.faults);
  const { topics } = kernel.mg.store;
  const before = await topics.get(name);
  if (before && before.source !== "api") return readOnly(name);
  // Pausing comes before the change and resuming after it, so that nothing is attempted in between under either.
  if (read.paused === true && before) await topics.pause(name, true);
  const put = await topics.put(read.definition, "api");
  if (put === "read_only") return readOnly(name);
  const paused = read.paused === undefined || read.paused === put.paused ? put : await topics.pause(name, read.paused);
  kernel.log.info(before ? "a topic was replaced" : "a topic was declared", { topic: name, actor: request.actor });
  return json(before ? 200 : 201, topicJson(paused ?? put, await servedNow(kernel.mg.store)));
}

async function setPaused(kernel: Kernel, request: ApiRequest, paused: boolean): Promise<Reply> {
  const text = await readText(request, BODY_BYTES.topic, true);
  if (!text.ok) return text.reply;
  const name = nameOf(request);
  const topic = isTopicName(name) ? await kernel.mg.store.topics.pause(name, paused) : null;
  if (!topic) return noSuchTopic(name);
  kernel.log.info(paused ? "a topic was paused" : "a topic was resumed", { topic: name, actor: request.actor });
  return json(200, topicJson(topic, await servedNow(kernel.mg.store)));
}

function nameOf(request: ApiRequest): string {
  return `${request.params.get("namespace") ?? ""}/${request.params.get("name") ?? ""}`;
}

function noSuchTopic(name: string): Reply {
  return problem("topic_not_found", `there is no topic ${name.slice(0, 250)}`);
}

function readOnly(name: string): Reply {
  return problem("topic_read_only", `topic ${name} is declared in the config file or in code: change it there`);
}

function invalidTopic(faults: readonly FieldFault[]): Reply {
  const errors = faults.map((fault) => ({ ...fault, code: "invalid_topic" as const }));
  const detail = faults.map((fault) => `${fault.field}: ${fault.detail}`).join("; ");
  return problem("invalid_topic", detail, { errors });
}
