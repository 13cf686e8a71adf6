/**
 * The walks of docs/walk.md are the ones that the code takes: both are walked, and each row's functions ran in its step, and
 * what ran in a step is named in its row or beside the walk.
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { Ran } from "./function-trace.ts";
import { walkBoth } from "./walk-scene.ts";
import { section, type WalkTable, walkTable } from "./walk-table.ts";

interface Followed {
  readonly heading: string;
  readonly beside: string;
  /** Whose files must be named. */
  readonly rooms: readonly string[];
}

const DELIVERED: Followed = {
  heading: "From accepted to delivered",
  beside: "Beside the first walk",
  rooms: ["src/client/", "src/worker/", "src/sink/", "src/message/", "src/store/postgres/statements/"],
};
const HEALED: Followed = {
  heading: "From dead to healed",
  beside: "Beside the second walk",
  rooms: ["src/recovery/", "src/store/postgres/recovery/"],
};

/**
 * Several rows may lie between two borders: an answer is judged, decided about and handed to the settler without the store, and
 * who heard of a death looks for it.
 */
const BORDERLESS: Readonly<Record<string, string>> = { judge: "answer", decide: "answer", hear: "find" };
const stepOf = (row: string): string => BORDERLESS[row] ?? row;

/** A getter, or a function that returns what it was asked, is no step: its file need not be named for it. */
const isTrivial = (name: string): boolean => name.startsWith("get ") || name === "get";

const isOrHolds = (path: string, file: string): boolean => (path.endsWith("/") ? file.startsWith(path) : file === path);

/** What a table says and the walk does not, and the other way round. */
function differences(table: WalkTable, steps: ReadonlyMap<string, Ran>, rooms: readonly string[]): string[] {
  const found: string[] = [];
  const known = [...table.beside, ...table.byTheClock];
  const named = new Map<string, Set<string>>();
  for (const row of table.rows) {
    const step = stepOf(row.step);
    const ran = steps.get(step);
    if (ran === undefined) found.push(`${row.step}: the walk has no such step`);
    const files = named.get(step) ?? new Set();
    named.set(step, files);
    for (const [file, functions] of row.named) {
      files.add(file);
      if (functions.length === 0) found.push(`${row.step}: no function of ${file} is named`);
      for (const name of functions) if (!ran?.get(file)?.has(name)) found.push(`${row.step}: ${name} of ${file} did not run`);
    }
  }
  for (const [step, files] of named) {
    for (const [file, functions] of steps.get(step) ?? []) {
      if (!rooms.some((room) => file.startsWith(room)) || files.has(file) || known.some((one) => isOrHolds(one, file))) continue;
      const told = [...functions].filter((name) => !isTrivial(name));
      if (told.length > 0) found.push(`${step}: ${file} ran (${told.join(", ")}) and is not named`);
    }
  }
  return found;
}

describe("the walks", () => {
  let steps: ReadonlyMap<string, Ran>;

  beforeAll(async () => {
    steps = await walkBoth();
  });

  for (const { heading, beside, rooms } of [DELIVERED, HEALED]) {
    it(`${heading}: the table is what runs`, () => {
      expect(differences(walkTable(heading, beside), steps, rooms)).toEqual([]);
    });

    it(`${heading}: what is said to run beside it runs in one of its steps`, () => {
      const { rows, beside: files } = walkTable(heading, beside);
      const ran = rows.flatMap(({ step }) => [...(steps.get(stepOf(step))?.keys() ?? [])]);
      expect(files.filter((path) => !ran.some((file) => isOrHolds(path, file)))).toEqual([]);
    });
  }

  it("a row that names a wrong function or file, and a row without a file that runs, are found", () => {
    const { rows, ...beside } = walkTable(DELIVERED.heading, DELIVERED.beside);
    const decide = rows.find(({ step }) => step === "decide");
    const wrong = (named: [string, string[]][]) =>
      differences(
        { rows: [...rows.filter((row) => row !== decide), { step: "decide", named: new Map(named) }], ...beside },
        steps,
        ["src/message/"],
      );
    const file = "src/message/decide.ts";
    expect(wrong([...(decide?.named ?? [])].map(([path, names]) => [path, [...names]]))).toEqual([]);
    expect(wrong([[file, ["reconsider"]]])).toContain(`decide: reconsider of ${file} did not run`);
    expect(wrong([["src/message/undecided.ts", ["decide"]]])).toContain("decide: decide of src/message/undecided.ts did not run");
    expect(wrong([]).join()).toContain(`answer: ${file} ran (decide) and is not named`);
  });

  it("from claim to settled a reader needs ten files, and each is on the walk", () => {
    const listed = [...section("From claim to settled in ten files").matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path]) => path);
    const walked = new Set(walkTable(DELIVERED.heading, DELIVERED.beside).rows.flatMap(({ named }) => [...named.keys()]));
    expect(listed).toHaveLength(10);
    expect(listed.filter((path) => !walked.has(path as string))).toEqual([]);
  });
});
