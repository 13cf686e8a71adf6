/**
 * Planted defects, each put into a bundle of the real source while it is made: the simulation names what each breaks, and shows it with a
 * history of a few actions. Without them the same seeds find nothing (simulation.test.ts).
 */
import { describe, expect, it } from "vitest";
import { dropSchema, openStore } from "../../support/postgres.ts";
import type { Compared } from "../compare.ts";
import type { Shrunk } from "../shrink.ts";
import type { History, Run } from "../simulate.ts";
import { type Defect, PLANTED } from "./planted.ts";

interface Bundle {
  simulate(seed: number, steps: number): Promise<Run>;
  shrink(failed: History, withinMs: number): Promise<Shrunk>;
  compare(seed: number, steps: number, store: unknown): Promise<Compared>;
  createPostgresStore(options: { url: string; schema: string }): Awaited<ReturnType<typeof openStore>>;
}

const SOAK = process.env.MAKEGOOD_SOAK === "1";
const SEEDS_MAX = SOAK ? 30 : 20;
const STEPS = SOAK ? 20_000 : 6_000;
const SHRINK_MS = SOAK ? 30_000 : 1_500;

async function bundleWith({ edits }: Defect): Promise<Bundle> {
  const { bundle } = (await import("../bundle.mjs" as string)) as { bundle(edits: unknown): Promise<string> };
  return import(/* @vite-ignore */ await bundle(edits));
}

/** The seed that showed it last is asked first; when the source has moved on since, others are. */
const seedsOf = ({ seed }: Defect): number[] => {
  const others = Array.from({ length: SEEDS_MAX }, (_, i) => i + 1).filter((one) => one !== seed);
  return SOAK ? others : [seed, ...others];
};

describe("planted defects", () => {
  it("are more than ten, with N1, N16 and N17 among them", () => {
    expect(PLANTED.length).toBeGreaterThan(10);
    for (const name of ["n1-", "n16-", "n17-"]) expect(PLANTED.some((defect) => defect.name.startsWith(name))).toBe(true);
  });

  it.each(PLANTED.filter(({ shownBy }) => shownBy === "memory"))(
    "$name",
    async (defect) => {
      const { simulate, shrink } = await bundleWith(defect);
      for (const seed of seedsOf(defect)) {
        const { failed } = await simulate(seed, STEPS);
        if (!failed) continue;
        expect(defect.breaks).toContain(failed.failure?.invariant);
        const { history } = await shrink(failed, SHRINK_MS);
        expect(history.failure?.invariant).toBe(failed.failure?.invariant);
        expect(history.actions.length).toBeLessThanOrEqual(failed.actions.length);
        process.stdout.write(
          `${defect.name}: seed ${seed}, step ${failed.failure?.step}, ${failed.actions.length} → ${history.actions.length} actions: ${history.failure?.text.slice(0, 140)}\n`,
        );
        return;
      }
      expect.fail(`${defect.name} was not found with ${SEEDS_MAX} seeds`);
    },
    300_000,
  );

  it.each(PLANTED.filter(({ shownBy }) => shownBy === "postgres"))(
    "$name",
    async (defect) => {
      const { compare, createPostgresStore } = await bundleWith(defect);
      const { schema, close } = await openStore();
      await close();
      const store = createPostgresStore({ url: process.env.TEST_DATABASE_URL as string, schema });
      await store.open();
      const { difference } = await compare(defect.seed, 1_000, store);
      await store.close();
      await dropSchema(schema);
      process.stdout.write(`${defect.name}: ${difference}\n`);
      expect(defect.breaks.some((one) => difference?.includes(`${one}:`))).toBe(true);
    },
    120_000,
  );
});
