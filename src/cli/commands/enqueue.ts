/**
 * `makegood enqueue <topic>`: hands one message over. The payload's text goes through unchanged.
 */
import type { Command } from "commander";
import { errorText } from "../../message/errors.ts";
import { checkJson } from "../../message/json-scanner.ts";
import { refusedAnswer, withApi } from "../api.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { integer } from "../integer.ts";
import { complain, type Io, printJson, readInput, say } from "../io.ts";
import type { Run } from "../run.ts";

interface Options {
  readonly payload?: string;
  readonly file?: string;
  readonly key?: string;
  readonly tenantId?: string;
  readonly delayMs?: number;
  readonly priority?: number;
  readonly orderingKey?: string;
}

export function enqueueCommand(program: Command, run: Run): void {
  program
    .command("enqueue <topic>")
    .description("hand over one message; without --payload or --file it is read from standard input")
    .option("--payload <json>", "the payload, as JSON")
    .option("--file <path>", "a file that holds the payload; - is standard input")
    .option("--key <key>", "the effect's identity: the same key is the same message")
    .option("--tenant-id <tenant>", "whose message it is")
    .option("--delay-ms <ms>", "not before this many milliseconds from now", integer)
    .option("--priority <n>", "-100 to 100, higher first", integer)
    .option("--ordering-key <key>", "messages with the same one are delivered in order")
    .addHelpText("after", "\nExample:\n  $ makegood enqueue billing/finalize --payload '{\"charge\":1}' --key charge-1")
    .action((topic: string, options: Options) =>
      run(async ({ io, config, json }) => {
        const payload = await payloadOf(io, options);
        if (payload === null) return EXIT.usage;
        const fields = JSON.stringify({
          topic,
          key: options.key,
          tenant_id: options.tenantId,
          delay_ms: options.delayMs,
          priority: options.priority,
          ordering_key: options.orderingKey,
        });
        return withApi(io, config, async (api): Promise<ExitCode> => {
          const answer = await api.call("POST", "/api/v1/messages", `${fields.slice(0, -1)},"payload":${payload}}`);
          const refused = refusedAnswer(io, answer, json);
          if (refused !== null) return refused;
          if (json) printJson(io, answer.text);
          else {
            const { id, inserted } = JSON.parse(answer.text) as { id: string; inserted: boolean };
            say(io, inserted ? `accepted ${id}` : `already accepted ${id}`);
          }
          return EXIT.ok;
        });
      }),
    );
}

/** Checked before it is spliced into the envelope: it must be one value and nothing else. */
async function payloadOf(io: Io, options: Options): Promise<string | null> {
  if (options.payload !== undefined && options.file !== undefined) {
    complain(io, "makegood: give either --payload or --file");
    return null;
  }
  const input = options.payload === undefined ? await readInput(io, options.file) : { text: options.payload };
  if ("fault" in input) {
    complain(io, `makegood: no payload: ${input.fault}`);
    return null;
  }
  const text = input.text.trim();
  try {
    checkJson(text, "invalid_payload");
    return text;
  } catch (error) {
    complain(io, `makegood: the payload is ${errorText(error)}`);
    return null;
  }
}
