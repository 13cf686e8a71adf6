/**
 * The rows of `docs/traceability.md` and what is wrong with one: a state that is not of the list, a number that supersedes and does
 * not exist, a test that is named without its title or is not there. Files are asked for by their path, so broken rows can be tried.
 */

export interface Row {
  readonly id: string;
  readonly state: string;
  readonly says: string;
}

export interface House {
  /** The titles in a file of tests or of a suite; empty: there is none, or no such file. */
  readonly titles: (path: string) => readonly string[];
  /** The titles of every file in `test/faults`. */
  readonly faults: readonly string[];
  readonly decisions: readonly string[];
}

/** How many there are of each kind; recovery has two more, 19a and 19b. */
export const NUMBERS: Readonly<Record<string, number>> = {
  FIN: 77,
  AUD: 36,
  OBX: 29,
  REC: 61,
  CON: 43,
  DF: 35,
  DA: 28,
  DO: 21,
  DR: 51,
  DX: 12,
  EV: 51,
};

/** The parts of the work that may still be owed. */
const PARTS = ["operations"];
const INVARIANTS = 12;

export function allNumbers(): string[] {
  const plain = Object.entries(NUMBERS).flatMap(([kind, count]) => Array.from({ length: count }, (_, i) => `${kind}-${i + 1}`));
  return [...plain, "REC-19a", "REC-19b"];
}

export function rowsOf(text: string): Row[] {
  return text.split("\n").flatMap((line) => {
    const cells = /^\|\s*([A-Z]{2,3}-\w+)\s*\|([^|]*)\|(.*)\|\s*$/.exec(line);
    if (cells === null) return [];
    const [, id = "", state = "", says = ""] = cells;
    return [{ id, state: state.trim(), says: says.trim() }];
  });
}

/** Every row is judged by itself, and superseding must end at something that is there. */
export function faultsOf(rows: readonly Row[], house: House): string[] {
  const known = new Set(allNumbers());
  const counted = new Map<string, number>();
  for (const { id } of rows) counted.set(id, (counted.get(id) ?? 0) + 1);
  return [
    ...[...known].filter((id) => counted.get(id) !== 1).map((id) => `${id}: ${counted.get(id) ?? 0} rows`),
    ...[...counted.keys()].filter((id) => !known.has(id)).map((id) => `${id}: no such number`),
    ...rows.flatMap((row) => [...stateFaults(row, rows, house), ...testFaults(row, house)].map((fault) => `${row.id}: ${fault}`)),
  ];
}

function stateFaults({ id, state, says }: Row, rows: readonly Row[], house: House): string[] {
  if (state === "built") return /\bnext[,:] \w/.test(says) ? ["built, and says that something comes next"] : [];
  if (state === "built in part") return /missing: \S+ \S+/.test(says) ? [] : ["built in part does not say what is missing"];
  if (state === "not taken" || state === "excluded") return says.split(/\s+/).length >= 5 ? [] : [`${state} does not say why`];
  const part = /^next: (.+)$/.exec(state)?.[1];
  if (part !== undefined) return PARTS.includes(part) ? [] : [`next names no part: ${part}`];
  const by = /^superseded by (.+)$/.exec(state)?.[1];
  if (by === undefined) return [`no such state: ${state}`];
  return by.split(/, /).flatMap((named) => supersedes(id, named, rows, house));
}

function supersedes(id: string, named: string, rows: readonly Row[], house: House): string[] {
  const decision = /^decision (\d{4})$/.exec(named)?.[1];
  if (decision !== undefined) return house.decisions.includes(decision) ? [] : [`no decision ${decision}`];
  const invariant = /^I(\d+)$/.exec(named)?.[1];
  if (invariant !== undefined) return Number(invariant) >= 1 && Number(invariant) <= INVARIANTS ? [] : [`no invariant ${named}`];
  const range = /^([A-Z]+)-(\d+)…(\d+)$/.exec(named);
  const ids = range ? numbersBetween(range[1] as string, Number(range[2]), Number(range[3])) : [named];
  return ids.flatMap((other) => (endsBuilt(other, rows, new Set([id])) ? [] : [`superseded by ${other}, which is not built`]));
}

function numbersBetween(kind: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, i) => `${kind}-${first + i}`);
}

function endsBuilt(id: string, rows: readonly Row[], seen: Set<string>): boolean {
  const state = rows.find((row) => row.id === id)?.state;
  if (state === undefined || seen.has(id)) return false;
  if (state === "built" || state === "built in part") return true;
  const next = /^superseded by ([A-Z]+-\d+)/.exec(state)?.[1];
  return next !== undefined && endsBuilt(next, rows, new Set([...seen, id]));
}

/** What a cell is read as; the rest of it are words. */
const PIECES = new RegExp(
  [
    /`(?<quoted>[^`]+)`/,
    /"(?<title>[^"]+)"/,
    /(?<own>by its number)/,
    /by (?<others>[A-Z]{1,3}-?\d+\w?(?:(?:, | and )[A-Z]{1,3}-?\d+\w?)*)/,
    /\bfaults? (?<fault>\d+(?:(?:, | and )\d+)*)/,
    /(?<suite>\bconformance)(?= `)/,
    /(?<between>, | and | |\([^()`]*\))/,
    /(?<word>[^\s`"(,]+|.)/,
  ]
    .map((piece) => piece.source)
    .join("|"),
  "g",
);

/** A test is named by file and title, by file and number, by a group of a conformance suite, or by the number of a fault. */
function testFaults({ id, state, says }: Row, house: House): string[] {
  const faults: string[] = [];
  let shown = 0;
  let open: string[] = [];
  let titled: string | null = null;
  let suite = false;
  const show = (path: string, held: boolean, what: string): void => {
    if (held) shown++;
    else faults.push(`${path} has no title ${what}`);
  };
  const leave = (): void => {
    for (const path of open) faults.push(`${path} is named without a title`);
    open = [];
  };
  const byNumbers = (numbers: readonly string[]): void => {
    if (open.length === 0 && titled !== null) open.push(titled);
    if (open.length === 0) faults.push("by a number, but of no test");
    for (const path of open) for (const number of numbers) show(path, house.titles(path).some(carries(number)), `with ${number}`);
    open = [];
  };
  for (const { groups = {} } of says.matchAll(PIECES)) {
    const { quoted, title, own, others, fault, between } = groups;
    if (between !== undefined) continue;
    if (title !== undefined) {
      const path: string | null = open.pop() ?? titled;
      if (path === null) continue;
      show(path, house.titles(path).includes(title), `"${title}"`);
      leave();
      titled = path;
      continue;
    }
    if (own !== undefined) byNumbers([id]);
    else if (others !== undefined) byNumbers(others.split(/, | and /));
    titled = null;
    if (own !== undefined || others !== undefined) continue;
    if (quoted !== undefined && suite && !quoted.includes("/")) {
      const path = `src/testing/store-conformance/${quoted.replaceAll(" ", "-")}.ts`;
      show(path, house.titles(path).length > 0, "at all");
      titled = path;
      continue;
    } else if (quoted !== undefined && isTestFile(quoted)) open.push(quoted);
    else if (fault !== undefined)
      for (const number of fault.split(/, | and /)) show("test/faults", house.faults.some(isFault(number)), `of fault ${number}`);
    else leave();
    suite = groups.suite !== undefined;
  }
  leave();
  if (state.startsWith("built") && shown === 0) faults.push("names no test by its title");
  return faults;
}

function isTestFile(path: string): boolean {
  return path.endsWith(".test.ts") || /^src\/testing\/.+\.ts$/.test(path) || /^test\/.+-suite\.ts$/.test(path);
}

/** The whole number: FIN-1 is not in FIN-10. */
function carries(number: string): (title: string) => boolean {
  const whole = new RegExp(`(?<![\\w-])${number}(?!\\w)`);
  return (title) => whole.test(title);
}

function isFault(number: string): (title: string) => boolean {
  const whole = new RegExp(`\\bfaults? (?:\\d+(?:, | and ))*${number}\\b`);
  return (title) => whole.test(title);
}
