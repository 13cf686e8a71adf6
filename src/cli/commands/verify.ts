/** `makegood verify`: whether everything that was accepted is accounted for, and where a producer's own messages are. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { AnswerOf } from "../../contract/table.ts";
import { IDS_MAX } from "../../contract/verify.ts";
import { errorText } from "../../message/errors.ts";
import { readObject } from "../../message/json.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { type AddCommand, ask, type Conversation, report } from "../conversation.ts";
import { complain, EXIT, type ExitCode, type Io, printJson, Stop, say } from "../io.ts";
import { routeCommand } from "../route-command.ts";

type Report = AnswerOf<"showConservation">;
type Whereabouts = AnswerOf<"findIds">["data"][number]["state"];

const LOOK_AGAIN_MS = 1_000;
const NAMED_MAX = 20;
const CODES: Readonly<Record<Report["state"], ExitCode>> = { whole: EXIT.ok, broken: EXIT.failed, unknown: EXIT.notProven };

const verifying = routeCommand("verify", {
  name: "verify",
  about: "whether everything that was accepted is accounted for; exit code 1: it is not, 5: it could not be proven",
  options: {
    "--against <file>": "a producer's own ids, one in a line, or JSON lines with an id: says where each is (- is standard input)",
    "--last": "only show how it stood after the last pass",
  },
  example: "verify --against orders.ndjson",
  async act(asking, input, { against, last }) {
    const found = last === true ? (await ask(asking, "showConservation", {})).value : await passed(asking, input);
    const compared = typeof against === "string" ? await compare(asking, against) : null;
    if (asking.json) printJson(asking.io, JSON.stringify({ ...found, against: compared }));
    else show(asking.io, found, compared);
    if (found.state === "broken" || (compared?.counts.unknown ?? 0) > 0) return EXIT.failed;
    return (compared?.counts.retired ?? 0) > 0 ? EXIT.notProven : CODES[found.state];
  },
});

/** What cannot be asked is not proven; 1 would say that something is lost. */
export const commands: AddCommand = (program, run) =>
  verifying(program, (work, reading) =>
    run((context) => {
      const unproven = (error: unknown): ExitCode => {
        const code = report(context, error);
        return code === EXIT.failed ? EXIT.notProven : code;
      };
      return work(context).catch(unproven);
    }, reading),
  );

/** To its end, however long it takes. */
async function passed(asking: Conversation, input: { full?: boolean | null | undefined }): Promise<Report> {
  let { value: found } = await ask(asking, "verify", input);
  while (found.running) {
    await sleep(systemClock, LOOK_AGAIN_MS);
    found = (await ask(asking, "showConservation", {})).value;
  }
  return found;
}

interface Compared {
  readonly counts: Record<Whereabouts, number>;
  readonly ids: number;
  /** At most a thousand of those that the store does not know. */
  readonly unknown: string[];
}

const UNKNOWN_MAX = 1_000;

async function compare(asking: Conversation, file: string): Promise<Compared> {
  const counts = { unknown: 0, retired: 0, live: 0, delivered: 0, dead: 0, resolved: 0, discarded: 0 };
  const unknown: string[] = [];
  let ids = 0;
  const look = async (some: readonly string[]): Promise<void> => {
    if (some.length === 0) return;
    ids += some.length;
    for (const { id, state } of (await ask(asking, "findIds", { ids: [...some] })).value.data) {
      counts[state]++;
      if (state === "unknown" && unknown.length < UNKNOWN_MAX) unknown.push(id);
    }
  };
  let batch: string[] = [];
  for await (const id of idsOf(asking.io, file)) {
    batch.push(id);
    if (batch.length < IDS_MAX) continue;
    await look(batch);
    batch = [];
  }
  await look(batch);
  return { counts, ids, unknown };
}

async function* idsOf(io: Io, file: string): AsyncGenerator<string> {
  const input = file === "-" ? await io.stdin() : null;
  if (file === "-" && input === null) throw new Stop("no list of ids: nothing was given on standard input");
  const lines = input
    ? String(input).split("\n")
    : createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  try {
    let at = 0;
    for await (const line of lines) {
      at++;
      if (line.trim() !== "") yield idOf(line.trim(), at);
    }
  } catch (error) {
    throw error instanceof Stop ? error : new Stop(`no list of ids: ${errorText(error)}`);
  }
}

function idOf(line: string, at: number): string {
  if (!line.startsWith("{")) return line.replace(/^"(.*)"$/, "$1");
  const id = readObject(line)?.id;
  if (typeof id === "string") return id;
  throw new Stop(`line ${at} of the list is JSON without an id`);
}

const WORDS = { whole: "whole", broken: "broken", unknown: "not proven" } as const;

function show(io: Io, found: Report, compared: Compared | null): void {
  const { state, reason, totals, divergences, divergences_total: total } = found;
  say(
    io,
    `conservation is ${WORDS[state]}${state === "broken" ? `: ${total} messages do not add up` : reason === null ? "" : `: ${reason}`}`,
  );
  if (totals) {
    const { accepted, delivered, resolved, discarded, live, archived, sealed, buckets } = totals;
    say(io, `${accepted} accepted = ${delivered} delivered + ${resolved} resolved + ${discarded} discarded + ${live} live`);
    say(io, `${archived} of them went with retention; ${sealed} of ${buckets} hours of topics and tenants are sealed`);
  }
  for (const limit of found.limits) say(io, `not shown by this: ${limit}`);
  for (const one of divergences) {
    const where = [one.topic, one.tenant_id && `tenant ${one.tenant_id}`, one.hour].filter(Boolean).join(", ");
    complain(io, "", `${one.kind}: ${one.count}${where === "" ? "" : ` (${where})`}`, `  ${one.means}`);
    if (one.detail !== null) complain(io, `  ${one.detail}`);
    const more = one.count - Math.min(one.ids.length, NAMED_MAX);
    if (one.ids.length > 0) complain(io, `  ${one.ids.slice(0, NAMED_MAX).join(" ")}${more > 0 ? ` and ${more} more` : ""}`);
    complain(io, `  what to do: ${one.remedy}`);
  }
  if (compared === null) return;
  const counts = Object.entries(compared.counts).filter(([, count]) => count > 0);
  say(io, "", `of ${compared.ids} ids in the list: ${counts.map(([name, count]) => `${count} ${name}`).join(", ") || "none"}`);
  if (compared.counts.retired > 0)
    say(io, "retired: its day was taken by retention, and a sum does not say whether one id was in it");
  for (const id of compared.unknown.slice(0, NAMED_MAX)) complain(io, `  unknown: ${id}`);
}
