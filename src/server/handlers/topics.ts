/** Topics over HTTP: declare, read, list, pause, resume, delete. What the config file or code declared is read-only here. */
import { servedNow } from "../../client/standing.ts";
import type { TOPIC_ROUTES } from "../../contract/topics.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { isTopicName } from "../../message/validate.ts";
import { DONE, json, notFound, page, type Refusal, type Reply, refused } from "../http.ts";
import { topicJson, topicOf } from "../json/topic-json.ts";
import type { Kernel } from "../kernel.ts";
import { type Asked, refusal } from "../read-request.ts";
import type { Handlers } from "./handlers.ts";

type Named = Pick<Asked<"getTopic">, "params" | "actor">;

const setPaused = (paused: boolean) => async (asked: Named, kernel: Kernel) => {
  const topic = await found(asked, (name) => kernel.mg.store.topics.pause(name, paused));
  kernel.log.info(paused ? "a topic was paused" : "a topic was resumed", { topic: topic.name, actor: asked.actor });
  return shown(kernel, topic);
};

export const TOPICS: Handlers<keyof typeof TOPIC_ROUTES> = {
  getTopic: async (asked, kernel) => shown(kernel, await found(asked, (name) => kernel.mg.store.topics.get(name))),
  async listTopics(_, { mg: { store } }) {
    const [data, served] = await Promise.all([store.topics.list(), servedNow(store)]);
    return page({ data }, (topic) => topicJson(topic, served));
  },
  async putTopic(asked, kernel) {
    const name = nameOf(asked);
    const read = topicOf(name, asked.body, kernel.checkSink);
    if (!read.ok) throw refusal("invalid_topic", read.faults);
    const { definition, paused } = read.value;
    const { topics } = kernel.mg.store;
    const before = await topics.get(name);
    if (before && before.source !== "api") throw readOnly(name);
    // Pausing comes before the change and resuming after it, so that nothing is attempted in between under either.
    if (paused === true && before) await topics.pause(name, true);
    const put = await topics.put(definition, "api");
    if (put === "read_only") throw readOnly(name);
    const now = paused === undefined || paused === put.paused ? put : await topics.pause(name, paused);
    kernel.log.info(before ? "a topic was replaced" : "a topic was declared", { topic: name, actor: asked.actor });
    return shown(kernel, now ?? put, before ? 200 : 201);
  },
  async deleteTopic(asked, { mg, log, abandoned }) {
    const name = nameOf(asked);
    const source = (await abandoned(name)) ? "file" : "api";
    const result = await found(asked, () => mg.store.topics.delete(name, source));
    if (result === "read_only") throw readOnly(name);
    if (result === "not_found") throw notFound("topic", name);
    if (result !== "deleted")
      throw refused("topic_in_use", `topic ${name} has messages that are not settled: deliver, resolve or discard them first`);
    log.info("a topic was deleted", { topic: name, actor: asked.actor });
    return DONE;
  },
  pauseTopic: setPaused(true),
  resumeTopic: setPaused(false),
};

const shown = async ({ mg }: Kernel, topic: TopicRecord, status = 200): Promise<Reply> =>
  json(status, topicJson(topic, await servedNow(mg.store)));

const nameOf = ({ params }: Pick<Named, "params">): string => `${params.namespace}/${params.name}`;

async function found<T>(asked: Named, find: (name: string) => Promise<T | null>): Promise<T> {
  const name = nameOf(asked);
  const topic = isTopicName(name) ? await find(name) : null;
  if (topic === null) throw notFound("topic", name);
  return topic;
}

const UNUSED = "once nothing declares it and no worker serves it, `makegood topics delete` on its database removes it";
const readOnly = (name: string): Refusal =>
  refused("topic_read_only", `topic ${name} is declared in the config file or in code: change it there; ${UNUSED}`);
