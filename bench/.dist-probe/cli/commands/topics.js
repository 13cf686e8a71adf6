import { refusedAnswer, withApi } from "../api.js";
import { EXIT } from "../exit-code.js";
import { complain, printJson, readInput, say, table } from "../io.js";
export function topicsCommand(program, run) {
    const topics = program.command("topics").description("declare topics and steer them");
    const calls = (name, description, use) => {
        topics
            .command(name)
            .description(description)
            .action((topic) => run(({ io, config, json }) => withApi(io, config, (api) => use(io, api, json, topic))));
    };
    calls("list", "every topic and the state it is in", (io, api, json) => list(io, api, json));
    calls("show <topic>", "one topic; its secrets are never shown", (io, api, json, topic) => ask(io, api, json, "GET", pathOf(topic), (text) => JSON.stringify(JSON.parse(text), null, 2)));
    topics
        .command("set <topic>")
        .description("declare a topic or replace it as a whole")
        .option("--file <path>", "its definition as JSON, the same as the API takes; - is standard input")
        .option("--kind <kind>", "short for a sink: http, webhook or notify")
        .option("--url <url>", "short for a sink: where it delivers")
        .addHelpText("after", "\nExample:\n  $ makegood topics set billing/finalize --kind http --url https://billing.example/finalize")
        .action((topic, options) => run(async ({ io, config, json }) => {
        const body = await definitionOf(io, options);
        if (body === null)
            return EXIT.usage;
        return withApi(io, config, (api) => ask(io, api, json, "PUT", pathOf(topic), () => `${topic} is set`, body));
    }));
    calls("pause <topic>", "stop attempts; messages are still accepted", (io, api, json, topic) => ask(io, api, json, "POST", `${pathOf(topic)}/pause`, () => `${topic} is paused`));
    calls("resume <topic>", "attempt again, also after a disabled sink", (io, api, json, topic) => ask(io, api, json, "POST", `${pathOf(topic)}/resume`, () => `${topic} is resumed`));
    calls("delete <topic>", "forget a topic that has no unsettled message", (io, api, json, topic) => ask(io, api, json, "DELETE", pathOf(topic), () => `${topic} is deleted`));
}
function pathOf(topic) {
    return `/api/v1/topics/${topic.split("/").map(encodeURIComponent).join("/")}`;
}
async function ask(io, api, json, method, path, words, body) {
    const answer = await api.call(method, path, body);
    const refused = refusedAnswer(io, answer, json);
    if (refused !== null)
        return refused;
    if (json)
        printJson(io, answer.text === "" ? "{}" : answer.text);
    else
        say(io, ...words(answer.text).split("\n"));
    return EXIT.ok;
}
async function definitionOf(io, options) {
    if (options.kind !== undefined || options.url !== undefined) {
        if (options.file === undefined)
            return JSON.stringify({ sink: { kind: options.kind ?? "http", url: options.url } });
        complain(io, "makegood: give either --file or --kind and --url");
        return null;
    }
    const input = await readInput(io, options.file);
    if ("text" in input)
        return input.text;
    complain(io, `makegood: no definition: ${input.fault}`);
    return null;
}
async function list(io, api, json) {
    const answer = await api.call("GET", "/api/v1/topics");
    const refused = refusedAnswer(io, answer, json);
    if (refused !== null)
        return refused;
    if (json) {
        printJson(io, answer.text);
        return EXIT.ok;
    }
    const { data } = JSON.parse(answer.text);
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
function stateOf(topic) {
    if (topic.paused)
        return "paused";
    if (topic.disabled_reason !== null)
        return "sink disabled";
    return topic.breaker.state === "closed" ? "delivering" : `breaker ${topic.breaker.state}`;
}
//# sourceMappingURL=topics.js.map