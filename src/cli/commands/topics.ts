/**
 * `makegood topics list|show|set|pause|resume|delete`.
 */
import type { Command } from "commander";
import { refusedAnswer, withApi } from "../api.ts";
import type { Api } from "../api-on.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { complain, type Io, printJson, readInput, say, table } from "../io.ts";
import type { TopicJson } from "../json-types.ts";
import type { Run } from "../run.ts";

interface SetOptions {
  readonly file?: string;
  readonly kind?: string;
  readonly url?: string;
}

export function topicsCommand(program: Command, run: Run): void {
  const topics = program.command("topics").description("declare topics and steer them");
  const calls = (
    name: string,
    description: string,
    use: (io: Io, api: Api, json: boolean, topic: string) => Promise<ExitCode>,
  ): void => {
    topics
      .command(name)
      .description(description)
      .action((topic: string) => run(({ io, config, json }) => withApi(io, config, (api) => use(io, api, json, topic))));
  };
  calls("list", "every topic and the state it is in", (io, api, json) => list(io, api, json));
  calls("show <topic>", "one topic; its secrets are never shown", (io, api, json, topic) =>
    ask(io, api, json, "GET", pathOf(topic), (text) => JSON.stringify(JSON.parse(text), null, 2)),
  );
  topics
    .command("set <topic>")
    .description("declare a topic or replace it as a whole")
    .option("--file <path>", "its definition as JSON, the same as the API takes; - is standard input")
    .option("--kind <kind>", "short for a sink of this kind (http if absent)")
    .option("--url <url>", "short for a sink: where it delivers")
    .addHelpText(
      "after",
      "\nExample:\n  $ makegood topics set billing/finalize --kind http --url https://billing.example/finalize",
    )
    .action((topic: string, options: SetOptions) =>
      run(async ({ io, config, json }) => {
        const body = await definitionOf(io, options);
        if (body === null) return EXIT.usage;
        return withApi(io, config, (api) => ask(io, api, json, "PUT", pathOf(topic), () => `${topic} is set`, body));
      }),
    );
  calls("pause <topic>", "stop attempts; messages are still accepted", (io, api, json, topic) =>
    ask(io, api, json, "POST", `${pathOf(topic)}/pause`, () => `${topic} is paused`),
  );
  calls("resume <topic>", "attempt again, also after a disabled sink", (io, api, json, topic) =>
    ask(io, api, json, "POST", `${pathOf(topic)}/resume`, () => `${topic} is resumed`),
  );
  calls("delete <topic>", "forget a topic that has no unsettled message", (io, api, json, topic) =>
    ask(io, api, json, "DELETE", pathOf(topic), () => `${topic} is deleted`),
  );
}

function pathOf(topic: string): string {
  return `/api/v1/topics/${topic.split("/").map(encodeURIComponent).join("/")}`;
}

async function ask(
  io: Io,
  api: Api,
  json: boolean,
  method: string,
  path: string,
  words: (text: string) => string,
  body?: string,
): Promise<ExitCode> {
  const answer = await api.call(method, path, body);
  const refused = refusedAnswer(io, answer, json);
  if (refused !== null) return refused;
  if (json) printJson(io, answer.text === "" ? "{}" : answer.text);
  else say(io, ...words(answer.text).split("\n"));
  return EXIT.ok;
}

async function definitionOf(io: Io, options: SetOptions): Promise<string | null> {
  if (options.kind !== undefined || options.url !== undefined) {
    if (options.file === undefined) return JSON.stringify({ sink: { kind: options.kind ?? "http", url: options.url } });
    complain(io, "makegood: give either --file or --kind and --url");
    return null;
  }
  const input = await readInput(io, options.file);
  if ("text" in input) return input.text;
  complain(io, `makegood: no definition: ${input.fault}`);
  return null;
}

async function list(io: Io, api: Api, json: boolean): Promise<ExitCode> {
  const answer = await api.call("GET", "/api/v1/topics");
  const refused = refusedAnswer(io, answer, json);
  if (refused !== null) return refused;
  if (json) {
    printJson(io, answer.text);
    return EXIT.ok;
  }
  const { data } = JSON.parse(answer.text) as { data: TopicJson[] };
  const rows = data.map((topic) => [
    topic.name,
    topic.sink.kind,
    stateOf(topic),
    topic.source,
    topic.ordering,
    topic.sink.url ?? "",
  ]);
  table(io, ["topic", "sink", "state", "source", "ordering", "url"], rows);
  return EXIT.ok;
}

function stateOf({ paused, disabled_reason, breaker, held }: TopicJson): string {
  if (paused) return "paused";
  if (disabled_reason !== null) return "sink disabled";
  if (breaker.state !== "closed") return `breaker ${breaker.state}`;
  // A server of the version before says nothing of it.
  if (held) return `not served: ${held.code}`;
  const tenants = breaker.tenants?.length ?? 0;
  return tenants === 0 ? "delivering" : `delivering, ${tenants} tenant${tenants === 1 ? "" : "s"} held`;
}
