/**
 * `makegood store acknowledge-loss`: a person knows that the store lost what it held, and health need not say it any more.
 */
import type { Command } from "commander";
import { refusedAnswer, withApi } from "../api.ts";
import { EXIT } from "../exit-code.ts";
import { printJson, say } from "../io.ts";
import type { Run } from "../run.ts";

export function storeCommand(program: Command, run: Run): void {
  program
    .command("store")
    .description("what a person says about the store")
    .command("acknowledge-loss")
    .description("you know what Redis lost (finding store_lost_data): no process says it any more, until it loses its data again")
    .requiredOption("--reason <text>", "why the loss is accepted; it goes to the log")
    .action(({ reason }: { reason: string }) =>
      run(({ io, config, json }) =>
        withApi(io, config, async (api) => {
          const answer = await api.call("POST", "/api/v1/store/acknowledge-loss", JSON.stringify({ reason }));
          const refused = refusedAnswer(io, answer, json);
          if (refused !== null) return refused;
          if (json) printJson(io, answer.text);
          else say(io, "the loss is acknowledged");
          return EXIT.ok;
        }),
      ),
    );
}
