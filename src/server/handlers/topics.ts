/**
 * Topics over HTTP: declare, read, list, pause, resume, delete. What the config file or code declared is read-only here.
 */
import { servedNow } from "../../client/standing.ts";
import type { TOPIC_ROUTES } from "../../contract/topics.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { isTopicName } from "../../message/validate.ts";
import { DONE, json, page } from "../http.ts";
import { topicJson, topicOf } from "../json/topic-json.ts";
import type { Kernel } from "../kernel.ts";
import { problem, type Reply } from "../problem.ts";
import { type Asked, refusal } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

type Named = Pick<Asked<"getTopic">, "params" | "actor">;

export function topicHandlers(kernel: Kernel): Handlers<keyof typeof TOPIC_ROUTES> {
  const { topics } = kernel.mg.store;
  const setPaused = (paused: boolean) => async (asked: Named) => {
    const name = nameOf(asked);
    const topic = isTopicName(name) ? await topics.pause(name, paused) : null;
    if (!topic) return noSuchTopic(name);
    kernel.log.info(paused ? "a topic was paused" : "a topic was resumed", { topic: name, actor: asked.actor });
    return shown(kernel, topic);
  };
  return {
    putTopic: (asked) => putTopic(kernel, asked),
    async getTopic(asked) {
      const name = nameOf(asked);
      const topic = isTopicName(name) ? await topics.get(name) : null;
      return topic ? shown(kernel, topic) : noSuchTopic(name);
    },
    async listTopics() {
      const [data, served] = await Promise.all([topics.list(), servedNow(kernel.mg.store)]);
      return page({ data }, (topic) => topicJson(topic, served));
    },
    async deleteTopic(asked) {
      const name = nameOf(asked);
      const source = (await kernel.abandoned(name)) ? "file" : "api";
      const result = isTopicName(name) ? await topics.delete(name, source) : "not_found";
      if (result === "read_only") return readOnly(name);
      if (result === "not_found") return noSuchTopic(name);
      if (result !== "deleted")
        return problem("topic_in_use", `topic ${name} has messages that are not settled: deliver, resolve or discard them first`);
      kernel.log.info("a topic was deleted", { topic: name, actor: asked.actor });
      return DONE;
    },
    pauseTopic: setPaused(true),
    resumeTopic: setPaused(false),
  };
}

async function putTopic(kernel: Kernel, asked: Asked<"putTopic">): Promise<Reply> {
  const name = nameOf(asked);
  const read = topicOf(name, asked.body, { checkSink: kernel.checkSink, trusted: false });
  if (!read.ok) throw refusal("invalid_topic", read.faults);
  const { definition, paused } = read.value;
  const { topics } = kernel.mg.store;
  const before = await topics.get(name);
  if (before && before.source !== "api") return readOnly(name);
  // Pausing comes before the change and resuming after it, so that nothing is attempted in between under either.
  if (paused === true && before) await topics.pause(name, true);
  const put = await topics.put(definition, "api");
  if (put === "read_only") return readOnly(name);
  const now = paused === undefined || paused === put.paused ? put : await topics.pause(name, paused);
  kernel.log.info(before ? "a topic was replaced" : "a topic was declared", { topic: name, actor: asked.actor });
  return shown(kernel, now ?? put, before ? 200 : 201);
}

const shown = async ({ mg }: Kernel, topic: TopicRecord, status = 200): Promise<Reply> =>
  json(status, topicJson(topic, await servedNow(mg.store)));

const nameOf = ({ params }: Pick<Named, "params">): string => `${params.namespace}/${params.name}`;

function noSuchTopic(name: string): Reply {
  return problem("topic_not_found", `there is no topic ${name.slice(0, 250)}`);
}

function readOnly(name: string): Reply {
  return problem(
    "topic_read_only",
    `topic ${name} is declared in the config file or in code: change it there; once nothing declares it and no worker serves it, \`makegood topics delete\` on its database removes it`,
  );
}
