/** `makegood audit` and `makegood evidence`: read the records, hold them, take them along with their proofs, and check that nothing was touched. */
import type { AnswerOf, InputOf } from "../../contract/table.ts";
import { compareCopies } from "../../evidence/compare-copies.ts";
import { addKey, readKeys } from "../../evidence/key-file.ts";
import { type NoteKey, parseKeys } from "../../evidence/notes.ts";
import { readCopies } from "../../evidence/outside.ts";
import { type Checked, checkProof } from "../../evidence/proof.ts";
import { emptyReport, joinReports, type Report } from "../../evidence/report.ts";
import { systemRandom } from "../../platform/random.ts";
import { type AddCommand, ask, type CommandContext, type Conversation, family } from "../conversation.ts";
import { complain, EXIT, type ExitCode, readInput, Stop, say, tell } from "../io.ts";
import { routeCommand } from "../route-command.ts";
import { listing, plural, sayFields } from "../table.ts";

type AuditRow = AnswerOf<"listAudit">["data"][number];
const records = listing<AuditRow>(["position", "recorded_at", "audit_type", "actor", "resource", "outcome", "event_id"]);
const toHold = (one: AnswerOf<"holdAudit">): string => one.event_id ?? `all of ${one.correlation_id}`;
const holds = listing<AnswerOf<"holdAudit">>([["hold", "id"], ["of", toHold], "placed_at", "placed_by", "reason", "released_at"]);

const audit = family("audit", "audit records: read, search, export with proof, hold", [
  routeCommand("listAudit", {
    name: "list",
    isDefault: true,
    flags: { audit_type: "type", correlation_id: "correlation" },
    example: "audit list --type executions --since 24h --outcome failure",
    show: records,
  }),
  routeCommand("getAudit", {
    name: "show",
    args: { id: "<event>" },
    show: (io, { payload: _, ...rest }, { text }) => {
      sayFields(io, rest);
      say(io, "", text.slice(text.indexOf(',"payload":') + 11, -1));
    },
  }),
  routeCommand("exportAudit", {
    name: "export",
    flags: { audit_type: "type", correlation_id: "correlation", limit: null },
    about: "every record that fits and is sealed, one JSON line each with its proof: `makegood evidence check` reads it",
    example: "audit export --correlation rr-1 > rr-1.ndjson",
    act: exportAll,
  }),
  routeCommand("holdAudit", {
    name: "hold",
    args: {},
    flags: { event_id: "event", correlation_id: "correlation" },
    example: 'audit hold --correlation rr-1 --reason "case 7"',
    show: (io, hold) => say(io, `hold ${hold.id} keeps ${toHold(hold)}`),
  }),
  routeCommand("releaseAuditHold", {
    name: "release",
    args: { id: "<hold>" },
    show: (io, hold) => say(io, `hold ${hold.id} is released: ${toHold(hold)} may go by retention again`),
  }),
  routeCommand("listAuditHolds", { name: "holds", show: holds }),
  routeCommand("eraseAudit", {
    name: "erase",
    args: { id: "<event>" },
    asks: async (_, { id }) => `Erase the content of audit record ${id}? Nothing brings it back.`,
    show: (io, _, { input }) => say(io, `record ${input.id} is erased; that it was there stays proven`),
  }),
]);

async function exportAll(asking: Conversation, input: InputOf<"exportAudit">): Promise<ExitCode> {
  let count = 0;
  for (let cursor: string | undefined = input.cursor ?? undefined; ; ) {
    const { value }: { value: AnswerOf<"exportAudit"> } = await ask(asking, "exportAudit", { ...input, cursor });
    for (const proof of value.data) asking.io.out(`${JSON.stringify(proof)}\n`);
    count += value.data.length;
    if (value.next_cursor === null) break;
    cursor = value.next_cursor;
  }
  complain(asking.io, `${plural(count, "record")}, each with its proof; what is in no block yet is left out`);
  return EXIT.ok;
}

const findings = listing<Report["findings"][number]>([["block", "height"], "kind", "source", "id", "detail"]);
const ranges = listing<Report["ranges"][number]>([["blocks", ({ from, to }) => `${from}-${to}`], "state", "anchored", "signed"]);

async function verifyAll(asking: Conversation, _: object, { against }: Readonly<Record<string, unknown>>): Promise<ExitCode> {
  const report = emptyReport();
  for (let cursor: string | undefined; ; ) {
    const { value } = await ask(asking, "verifyEvidence", { cursor });
    const { next_cursor, ...part } = value;
    joinReports(report, part as Report);
    if (next_cursor === null) break;
    cursor = next_cursor;
  }
  const compared = typeof against === "string" ? await compare(asking, against, report) : null;
  const isWhole = report.findings.length === 0;
  tell(asking, { whole: isWhole, ...report, compared }, () => showReport(asking, report, compared));
  return isWhole ? EXIT.ok : EXIT.failed;
}

/** A page of blocks at a time, in the order of the copy. */
async function compare(asking: Conversation, path: string, sum: Report): Promise<number> {
  const known = new Map<string, string>();
  const { report, compared } = await compareCopies(readCopies(path), async (height) => {
    if (!known.has(height)) {
      known.clear();
      const before = String(BigInt(height) - 1n);
      const { value } = await ask(asking, "listEvidenceBlocks", { cursor: before, limit: 500 });
      for (const one of value.data) known.set(one.height, one.note);
    }
    const note = known.get(height);
    return note === undefined ? null : { height, note };
  });
  joinReports(sum, { ...report, unsealed: sum.unsealed });
  return compared;
}

function showReport({ io }: CommandContext, report: Report, compared: number | null): void {
  if (report.ranges.length > 0) ranges(io, { data: report.ranges });
  const { blocks, intact, retired, erased, broken, unsealed, more } = report;
  say(
    io,
    "",
    `${plural(blocks, "block")}: ${intact} rows intact, ${broken} broken, ${retired} retired, ${erased} erased; ${unsealed} not sealed yet`,
  );
  if (compared !== null) say(io, `${plural(compared, "note")} of the copy compared`);
  if (report.findings.length === 0) return;
  say(io, "");
  findings(io, { data: report.findings });
  if (more > 0) say(io, `and ${more} more`);
}

async function trusted({ config }: CommandContext, given: readonly string[]): Promise<NoteKey[]> {
  const ofFile = config.evidence_key_file === null ? [] : await readKeys(config.evidence_key_file);
  return [...given.flatMap((line) => parseKeys(line)), ...ofFile];
}

const checkedList = listing<Checked>([
  ["record", "id"],
  ["block", "height"],
  ["sealed", "sealedAt"],
  "signed",
  ["fault", "fault"],
]);

/** Without a store and without a server: for anyone who was given an export. */
const check: AddCommand = (parent, run) =>
  parent
    .command("check <file>")
    .description("check proofs without the store: one of `evidence prove`, or the lines of `audit export`; - is standard input")
    .option("--key <key>", "a public key that is trusted, as `evidence keys` shows it", (one: string, all: string[] = []) => [
      ...all,
      one,
    ])
    .action((file: string, { key = [] }: { key?: string[] }) =>
      run(async (context) => {
        const { io } = context;
        const keys = await trusted(context, key);
        const text = await readInput(io, file, "proof");
        const proofs = text.trim().startsWith("{\n") ? [text] : text.split("\n").filter((line) => line.trim() !== "");
        const results = proofs.map((one) => checkProof(parsed(one), keys));
        if (results.length === 0) throw new Stop(`${file} holds no proof`);
        const wrong = results.filter(({ ok }) => !ok);
        tell(context, { checked: results.length, wrong: wrong.length, trusted: keys.length > 0, results }, () => {
          if (wrong.length > 0) checkedList(io, { data: wrong });
          say(io, `${plural(results.length, "proof")} checked, ${wrong.length} wrong`);
          if (keys.length === 0)
            say(io, "no key is trusted: they agree with themselves, and who signed is not known; give --key");
        });
        return wrong.length === 0 ? EXIT.ok : EXIT.failed;
      }),
    );

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const keygen: AddCommand = (parent, run) =>
  parent
    .command("keygen <file>")
    .description("make a key that signs evidence; where the file is there already the new key comes first and both sign")
    .action((file: string) =>
      run(async (context) => {
        const keys = await addKey(file, systemRandom);
        const verifiers = keys.map(({ verifier }) => verifier);
        return tell(context, { file, keys: verifiers }, () =>
          say(context.io, `${file}: the first of these is new; restart what seals`, ...verifiers.map((one) => `  ${one}`)),
        );
      }),
    );

export const commands = [
  audit,
  family("evidence", "proof that audit and provenance are what was written", [
    routeCommand("verifyEvidence", {
      name: "verify",
      flags: null,
      about: "make everything again from the rows and compare it; exit code 1 if anything is not what was sealed",
      options: { "--against <file>": "a copy of the notes that was kept elsewhere, or a log with them" },
      example: "evidence verify --against /mnt/worm/evidence.ndjson",
      act: verifyAll,
    }),
    routeCommand("proveRecord", {
      name: "prove",
      args: { id: "<id>" },
      about: "the proof of one record, to be given away: an audit record by its event id, provenance by its number",
      example: "evidence prove e-1 > e-1.json",
      show: (io, _, { text }) => io.out(`${text}\n`),
    }),
    check,
    routeCommand("getEvidence", {
      name: "keys",
      about: "which keys are trusted, how far the chain goes, and where it is copied to",
      show: (io, { keys, copied_to, height }) => {
        sayFields(io, { height: height ?? "none", copied_to: copied_to ?? "nowhere", keys: keys.length });
        say(io, ...(keys.length === 0 ? ["nothing is signed: set MAKEGOOD_EVIDENCE_KEY_FILE"] : keys));
      },
    }),
    keygen,
  ]),
];
