/**
 * Whether a row that is gone left the proper way: its departure must agree with its own note, be signed by a trusted key where there is one,
 * and come to its root over exactly the leaves that it says it took. Each is checked once in a part.
 */
import type { Row, Run } from "../store/home.ts";
import { EVIDENCE_SOURCES, type EvidenceSource } from "../store/shared/evidence-rows.ts";
import { type Departure, departureText } from "./block.ts";
import { treeOf } from "./departures.ts";
import { createTree } from "./merkle.ts";
import { type NoteKey, readNote } from "./notes.ts";
import type { Origins } from "./origins.ts";
import { find, type Report } from "./report.ts";
import { bytes } from "./seal.ts";

interface Gone {
  readonly source: EvidenceSource;
  readonly pos: string;
  readonly at: string;
  readonly gone: string | null;
}

export interface Departures {
  /** Null: nothing that holds says that it left. */
  of(row: Gone): Promise<Departure["kind"] | null>;
  checkAll(): Promise<void>;
}

interface Parts {
  readonly run: Run;
  readonly s: string;
  readonly origins: Origins;
  readonly keys: readonly NoteKey[];
  readonly report: Report;
  readonly firstSigned: () => Promise<{ readonly firstPos: string } | null>;
}

const PAGE = 500;

const ms = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const COLUMNS = `id::text, kind, source::text, first_pos::text, last_pos::text, ${ms("from_at")}, ${ms("to_at")}, count::text,
  encode(root, 'hex'), to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), actor, reason, note`;

function departureOf(row: Row): Departure & { readonly number: number; readonly note: string } {
  const [, kind, number, firstPos, lastPos, fromAt, toAt, count, root, at, actor, reason, note] = row as readonly string[];
  const source = EVIDENCE_SOURCES.find((one) => String(one.number) === number)?.name;
  const rest = { kind, source, firstPos, lastPos, fromAt: fromAt ?? null, toAt: toAt ?? null, at, actor, reason, note };
  return { ...rest, number: Number(number), count: Number(count), root: bytes(root) } as ReturnType<typeof departureOf>;
}

export function createDepartures({ run, s, origins, keys, report, firstSigned }: Parts): Departures {
  const checked = new Map<string, Promise<Departure["kind"] | null>>();

  async function check(row: Row): Promise<Departure["kind"] | null> {
    const id = row[0] as string;
    const { number, note, ...one } = departureOf(row);
    const { text, signed } = readNote(note, keys);
    const detail = (what: string): string => `departure ${id} (${one.kind}, ${one.count} of ${one.source}): ${what}`;
    const wrong = (what: string): null => {
      find(report, "departure_wrong", { source: one.source, detail: detail(what) });
      return null;
    };
    if (text !== departureText(origins.ofDeparture(id), one)) return wrong("it does not agree with its own note");
    if (signed === "bad") return wrong("its signature is not over this text");
    if (keys.length > 0 && signed === "unknown") return wrong("it is signed by a key that is not among the trusted ones");
    // What was sealed under a signature does not leave without one.
    const since = await firstSigned();
    if (signed === "none" && since && BigInt(one.lastPos) >= BigInt(since.firstPos)) return wrong("it is not signed");
    const tree = one.fromAt === null ? await marked(id) : await treeOf(run, s, number, one);
    if (tree.size !== one.count || !tree.root().equals(one.root)) return wrong("its leaves do not come to its root");
    return one.kind;
  }

  async function marked(id: string) {
    const tree = createTree();
    for (const [leaf] of await run(`select encode(leaf, 'hex') from ${s}.evidence_leaf where gone = $1::bigint order by pos`, [
      id,
    ]))
      tree.add(bytes(leaf));
    return tree;
  }

  const once = (row: Row): Promise<Departure["kind"] | null> => {
    const id = row[0] as string;
    const known = checked.get(id) ?? check(row);
    checked.set(id, known);
    return known;
  };
  const read = (where: string, values: unknown[] = []) =>
    run(`select ${COLUMNS} from ${s}.evidence_departure d where ${where}`, values);
  /** One a month and source: few enough to be kept. */
  let months: Promise<Row[]> | undefined;

  async function ofMonth({ source, pos, at }: Gone): Promise<Departure["kind"] | null> {
    months ??= read("from_at is not null order by d.id");
    for (const row of await months) {
      const { number, firstPos, lastPos, fromAt, toAt } = departureOf(row);
      const within = BigInt(pos) >= BigInt(firstPos) && BigInt(pos) <= BigInt(lastPos);
      const then = Date.parse(at);
      if (number !== source.number || !within || then < Date.parse(fromAt ?? "") || then >= Date.parse(toAt ?? "")) continue;
      const kind = await once(row);
      if (kind !== null) return kind;
    }
    return null;
  }

  return {
    async of(row) {
      if (row.gone === "0") return null;
      if (row.gone === null) return ofMonth(row);
      const known = checked.get(row.gone);
      if (known !== undefined) return known;
      const [found] = await read("id = $1::bigint and source = $2", [row.gone, row.source.number]);
      return found ? once(found) : null;
    },
    async checkAll() {
      for (let after = "0"; ; ) {
        const page = await read(`id > $1::bigint order by d.id limit ${PAGE}`, [after]);
        for (const row of page) await once(row);
        const last = page.at(-1)?.[0];
        if (!last) return;
        after = last;
      }
    },
  };
}
