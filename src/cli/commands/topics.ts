/** `makegood topics`: declare topics and steer them. */
import type { AnswerOf } from "../../contract/table.ts";
import { isOwnTopic } from "../../presets/own-topics.ts";
import { family, type Options } from "../conversation.ts";
import { type Io, readInput, Stop, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listing, listOthers, plural, sayJson } from "../table.ts";

type Topic = AnswerOf<"getTopic">;
const kindOf = ({ sink }: Topic): string => sink.kind;
const urlOf = ({ sink }: Topic): string | null => sink.url;
const topicList = listing<Topic>([["topic", "name"], ["sink", kindOf], ["state", stateOf], "source", "ordering", ["url", urlOf]]);

export const commands = family("topics", "declare topics and steer them", [
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
