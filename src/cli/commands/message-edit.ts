/**
 * `makegood messages edit`: a dead letter again with another payload. The original is kept, resolved.
 */
import type { Command } from "commander";
import { errorText } from "../../message/errors.ts";
import { checkJson } from "../../message/json-scanner.ts";
import { refusedAnswer, withApi } from "../api.ts";
import { part } from "../ask.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { integer } from "../integer.ts";
import { complain, printJson, readInput, say } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

interface EditOptions {
  readonly payload?: string;
  readonly file?: string;
  readonly key?: string;
  readonly reason: string;
  readonly revision?: number;
  readonly force?: boolean;
}

export function messageEdit(messages: Command, run: Run): void {
  messages
    .command("edit <id>")
    .description("send a dead letter again with another payload; the original is kept")
    .option("--payload <json>", "the new payload")
    .option("--file <path>", "the new payload; - is standard input (the default)")
    .option("--key <key>", "instead of the key it had")
    .requiredOption("--reason <text>", "why; it becomes part of both histories")
    .option("--revision <n>", "refuse if the message has moved on since", integer)
    .option("--force", "also while a copy of it is on its way to another receiver")
    .addHelpText(
      "after",
      `\nExample:\n  $ makegood messages edit <id> --payload '{"charge":"ch_1"}' --reason "a typo in the charge"`,
    )
    .action((id: string, options: EditOptions) => run((context) => edit(context, id, options)));
}

async function edit({ io, config, json }: CommandContext, id: string, options: EditOptions): Promise<ExitCode> {
  const input = options.payload === undefined ? await readInput(io, options.file) : { text: options.payload };
  if ("fault" in input) {
    complain(io, `makegood: no payload: ${input.fault}`);
    return EXIT.usage;
  }
  const text = input.text.trim();
  try {
    // Before it is spliced into the body: it must be one value and nothing else.
    checkJson(text, "invalid_payload");
  } catch (error) {
    complain(io, `makegood: the payload is ${errorText(error)}`);
    return EXIT.usage;
  }
  const members = JSON.stringify({ key: options.key, reason: options.reason, revision: options.revision, force: options.force });
  const body = `${members.slice(0, -1)},"payload":${text}}`;
  return withApi(io, config, async (api) => {
    const answer = await api.call("POST", `/api/v1/messages/${part(id)}/edit`, body);
    const refused = refusedAnswer(io, answer, json);
    if (refused !== null) return refused;
    if (json) printJson(io, answer.text);
    else say(io, `${id} goes on as ${(JSON.parse(answer.text) as { id: string }).id}`);
    return EXIT.ok;
  });
}
