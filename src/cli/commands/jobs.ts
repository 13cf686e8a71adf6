/** `makegood jobs` and `makegood archive`: maintenance by hand, and what retention took away. */
import type { AnswerOf } from "../../contract/table.ts";
import { ask, type Conversation, family, type Options } from "../conversation.ts";
import { EXIT, type ExitCode, type Io, say, tell } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listBelow, listing } from "../table.ts";

type Report = AnswerOf<"runJob">;
type Input = Parameters<typeof ask<"runJob">>[2];

const jobList = listing<AnswerOf<"listJobs">["data"][number]>(["name", ["every s", (job) => job.every_ms / 1_000], "about"]);
const chunkList = listing<AnswerOf<"listArchives">["data"][number]>(["id", "class", "at", "rows", "bytes", "place"]);
const faultList = listing<AnswerOf<"verifyArchive">["faults"][number]>(["id", "class", "fault"]);

/** The seeds' names of what is run here (REC-24, REC-56). */
const FORMER: Readonly<Record<string, string>> = {
  provenance_archive: "retire-provenance",
  reconcile_dl: "reconcile",
  retention_cleanup: "prune-settled",
};

function sayReport(io: Io, { name, result, counts, notes, error, dry_run }: Report): void {
  const sums = Object.entries(counts).map(([word, count]) => `${word.replaceAll("_", " ")} ${count}`);
  const what = dry_run ? "would be run" : `is ${result}`;
  say(io, [`${name} ${what}`, ...sums].join(", "), ...notes, ...(error === null ? [] : [`error: ${error}`]));
}

/** Run after run until nothing is left; what was done is added up. */
async function runAll(asking: Conversation, input: Input, { once }: Options): Promise<ExitCode> {
  const name = FORMER[String(input.name)] ?? String(input.name);
  let total: Report | undefined;
  for (;;) {
    const { value } = await ask(asking, "runJob", { ...input, name });
    const counts = { ...total?.counts };
    for (const [word, count] of Object.entries(value.counts)) counts[word] = (counts[word] ?? 0) + count;
    total = { ...value, counts, ms: (total?.ms ?? 0) + value.ms };
    if (once === true || !value.more || value.dry_run || value.result !== "done") break;
  }
  const report = total;
  tell(asking, report, () => sayReport(asking.io, report));
  // Skipped: another one does it, which is as good.
  return report.result === "failed" || report.result === "stopped" ? EXIT.failed : EXIT.ok;
}

export const commands = [
  family("jobs", "maintenance: what runs by itself in serve and work, and can be run by hand", [
    routeCommand("listJobs", { name: "list", isDefault: true, show: jobList }),
    routeCommand("runJob", {
      name: "run",
      args: { name: "<name>" },
      options: { "--once": "one bounded run, also where there is more to do" },
      example: "jobs run retire-provenance --dry-run --json",
      act: runAll,
    }),
  ]),
  family("archive", "records that left their tables: listed, read again, verified", [
    routeCommand("listArchives", { name: "list", isDefault: true, show: chunkList }),
    routeCommand("readArchive", {
      name: "read",
      args: { id: "<id>" },
      about: "the records of a chunk, a JSON object a line, checked against their checksum",
      show: (io, _, { text }) => io.out(text),
    }),
    routeCommand("verifyArchive", {
      name: "verify",
      async act(asking) {
        const { value } = await ask(asking, "verifyArchive", {});
        const { chunks, rows, whole, unread, faults } = value;
        tell(asking, value, () => {
          const apart = unread > 0 ? `, ${unread} without their text here` : "";
          say(
            asking.io,
            `${chunks} chunks with ${rows} records: ${whole} are as they were written${apart}, ${faults.length} are not`,
          );
          listBelow(asking.io, faultList, faults);
        });
        return faults.length > 0 ? EXIT.failed : EXIT.ok;
      },
    }),
  ]),
];
