/**
 * `makegood enqueue <topic>`: hands one message over. The payload's text goes through unchanged.
 */
import type { Command } from "commander";
import { say } from "../io.ts";
import { PAYLOAD_OPTIONS, payloadBody } from "../payload.ts";
import { routeCommand } from "../route-command.ts";
import type { Run } from "../run.ts";

export function enqueueCommand(program: Command, run: Run): void {
  routeCommand(program, run, "enqueue", {
    name: "enqueue",
    args: { topic: "<topic>" },
    about: "hand over one message; without --payload or --file it is read from standard input",
    example: `enqueue billing/finalize --payload '{"charge":1}' --key charge-1`,
    options: PAYLOAD_OPTIONS,
    before: async (asking, fields, options) => ({ body: await payloadBody(asking.io, fields, options) }),
    show(io, made) {
      if ("id" in made) say(io, made.inserted ? `accepted ${made.id}` : `already accepted ${made.id}`);
    },
  });
}
