/**
 * `makegood topics list|show|set|pause|resume|delete`.
 */
import type { Command } from "commander";
import type { AnswerOf } from "../../contract/table.ts";
import { isOwnTopic } from "../../presets/own-topics.ts";
import { confirmed, YES } from "../confirm.ts";
import { ask } from "../conversation.ts";
import { Stop } from "../exit-code.ts";
import { type Io, readInput, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";
import { listing, plural, sayJson, wrapped } from "../table.ts";

type Topic = AnswerOf<"getTopic">;

export function topicsCommand(program: Command, run: Run): void {
  const topics = program.command("topics").description("declare topics and steer them");
  routeCommand(topics, run, "listTopics", {
    name: "list",
    options: { "--all": "Makegood's own topics, too" },
    show: (io, { data }, { options }) => showTopics(io, data, options.all === true),
  });
  routeCommand(topics, run, "getTopic", { name: "show", about: "one topic; its secrets are never shown", show: sayJson });
  routeCommand(topics, run, "putTopic", {
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
  });
  routeCommand(topics, run, "pauseTopic", { name: "pause", show: (io, { name }) => say(io, `${name} is paused`) });
  routeCommand(topics, run, "resumeTopic", { name: "resume", show: (io, { name }) => say(io, `${name} is resumed`) });
  routeCommand(topics, run, "deleteTopic", {
    name: "delete",
    about: "forget a topic that has no unsettled message; asks first",
    options: YES,
    async before(asking, { namespace, name }, options) {
      const { value: topic } = await ask(asking, "getTopic", { namespace, name });
      if (options.yes !== true) showTopics(asking.io, [topic], true);
      await confirmed(asking.io, options, `Delete topic ${topic.name}? Whatever still enqueues to it is refused from then on.`);
      return undefined;
    },
    show: (io, _, { input }) => say(io, `${input.namespace}/${input.name} is deleted`),
  });
}

async function definitionOf(io: Io, options: Readonly<Record<string, unknown>>): Promise<string> {
  const { file, kind, url } = options as Readonly<Record<string, string | undefined>>;
  if (kind === undefined && url === undefined) return readInput(io, file, "definition");
  if (file !== undefined) throw new Stop("give either --file or --kind and --url");
  return JSON.stringify({ sink: { kind: kind ?? "http", url } });
}

const topicList = listing<Topic>({
  topic: "name",
  sink: ({ sink }) => sink.kind,
  state: stateOf,
  source: "source",
  ordering: "ordering",
  url: ({ sink }) => sink.url,
});

function showTopics(io: Io, all: readonly Topic[], own: boolean): void {
  const data = all.filter(({ name }) => own || !isOwnTopic(name));
  topicList(io, { data });
  const hidden = all.length - data.length;
  if (hidden > 0) say(io, "", ...wrapped(io, `${hidden} of Makegood's own topics are hidden: --all shows them`, ""));
}

function stateOf({ paused, disabled_reason, breaker, held }: Topic): string {
  if (paused) return "paused";
  if (disabled_reason !== null) return "sink disabled";
  if (breaker.state !== "closed") return `breaker ${breaker.state}`;
  if (held) return `not served: ${held.code}`;
  const tenants = breaker.tenants.length;
  return tenants === 0 ? "delivering" : `delivering, ${plural(tenants, "tenant")} held`;
}
