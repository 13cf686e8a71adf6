/** `makegood streams`: the dead letters of the seeds' Redis streams, listed, replayed, archived, and trimmed after that. */
import { basename, dirname } from "node:path";
import { Argument } from "commander";
import { createStreamFiles } from "../../archive/stream-files.ts";
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { systemRandom } from "../../platform/random.ts";
import { STREAM_NAMES } from "../../server/dead-streams.ts";
import { type AddCommand, ask, type Conversation, confirmed, family, type Options, YES } from "../conversation.ts";
import { EXIT, type ExitCode, say, tell } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listing, sayJson } from "../table.ts";

type Entries = AnswerOf<"listStreamEntries">;
const entryList = listing<Entries["data"][number]>(["id", "kind", "code", "reason", ["message", "message_id"]]);
const NAME = `<${STREAM_NAMES.join("|")}>`;

async function agreed<Id extends "replayStream" | "trimStream">(
  asking: Conversation,
  id: Id,
  input: InputOf<Id>,
  options: Options,
  question: (selected: number) => string,
): Promise<void> {
  if (options.yes === true || input.dry_run === true) return;
  const { value } = await ask(asking, id, { ...input, dry_run: true });
  await confirmed(asking.io, question((value as unknown as { selected: number }).selected));
}

/** Prints it; what could not be done is a failure. */
function told(
  asking: Conversation,
  value: { readonly errors: readonly { id: string; error: string }[] },
  words: string,
): ExitCode {
  tell(asking, value, () => say(asking.io, words, ...value.errors.map(({ id, error }) => `${id}: ${error}`)));
  return value.errors.length === 0 ? EXIT.ok : EXIT.failed;
}

const replay = routeCommand("replayStream", {
  name: "replay",
  args: { name: NAME, ids: "[ids...]" },
  about: "entries, or without ids the oldest up to 1000: each once",
  options: YES,
  async act(asking, given, options) {
    const { ids, ...rest } = given;
    const input = ids?.length ? given : (rest as typeof given);
    await agreed(asking, "replayStream", input, options, (count) => `replay ${count} entries of ${input.name}?`);
    const { value } = await ask(asking, "replayStream", input);
    const { selected, replayed, skipped, errors } = value;
    const would = `${selected} would be replayed`;
    return told(
      asking,
      value,
      value.dry_run ? would : `${replayed} replayed, ${skipped} were before, ${errors.length} could not be`,
    );
  },
});

const archived = (asking: Conversation, value: AnswerOf<"trimStream">): ExitCode => {
  const { length, selected, archived: done, skipped, trimmed, errors } = value;
  const would = `${selected} of ${length} would be archived`;
  return told(
    asking,
    value,
    value.dry_run ? would : `${done} archived, ${skipped} were there, ${trimmed} deleted, ${errors.length} left`,
  );
};

const archive = routeCommand("archiveStream", {
  name: "archive",
  args: { name: NAME },
  act: async (asking, input) => archived(asking, (await ask(asking, "archiveStream", input)).value),
});

const trim = routeCommand("trimStream", {
  name: "trim",
  args: { name: NAME },
  options: YES,
  async act(asking, input, options) {
    const question = (count: number) => `archive and delete the ${count} oldest entries of ${input.name}?`;
    await agreed(asking, "trimStream", input, options, question);
    return archived(asking, (await ask(asking, "trimStream", input)).value);
  },
});

const read: AddCommand = (parent, run) => {
  parent
    .command("read")
    .description("entries of a file that `archive` or `trim` wrote, a JSON object a line, checked")
    .addArgument(new Argument("<stream>", "which one").choices(STREAM_NAMES))
    .argument("<file>", "where it is")
    .action((name: string, path: string) =>
      run(async ({ io, config }) => {
        const how = { directory: dirname(path), name, sealKey: config.seal_key ?? undefined, random: systemRandom };
        io.out(await createStreamFiles(how).read(basename(path)));
        return EXIT.ok;
      }),
    );
};

export const commands = family("streams", "dead letters of the Redis streams of MAKEGOOD_STREAMS", [
  routeCommand("listStreamEntries", {
    name: "list",
    args: { name: NAME },
    flags: { cursor: "after" },
    show(io, answer) {
      if (answer.data.length > 0) entryList(io, answer);
      const next = answer.next_cursor === null ? "" : `; go on with --after ${answer.next_cursor}`;
      say(io, `${answer.total} in ${answer.stream}${next}`);
    },
  }),
  routeCommand("getStreamEntry", {
    name: "show",
    args: { name: NAME, id: "<id>" },
    show: sayJson,
  }),
  ...[replay, archive, trim, read],
]);
