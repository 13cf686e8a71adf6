/**
 * Long texts do not hold up the process: a batch of them is masked in many turns of the event loop, an ordinary one in a single turn.
 */
import { expect, it } from "vitest";
import { ANN, createScene } from "./scene.ts";

/** How many turns others had while `work` was done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let next: NodeJS.Immediate;
  const count = (): void => {
    turns++;
    next = setImmediate(count);
  };
  next = setImmediate(count);
  await work;
  clearImmediate(next);
  return turns;
}

async function turnsOf(texts: readonly string[]): Promise<number> {
  const { engine, report } = await createScene();
  await engine.ingest(report(), ANN);
  const turns = await turnsDuring(
    Promise.all(texts.map((text, n) => engine.ingest(report({ errorMessage: text, idempotencyKey: `n-${n}` }), ANN))),
  );
  const { data } = await engine.groups({ limit: 10 });
  expect(data.reduce((sum, { occurrenceCount }) => sum + occurrenceCount, 0)).toBe(texts.length + 1);
  return turns;
}

it("lets others run between the texts of a batch when they are long", async () => {
  const long = Array.from({ length: 40 }, (_, n) => `it is late ${"or so ".repeat(680)}${n}`);
  const short = Array.from({ length: 40 }, () => "it is late");
  const [many, few] = [await turnsOf(long), await turnsOf(short)];
  // 40 texts of 4 KiB are ten times what one turn takes, and each pause is at least one turn.
  expect(many - few).toBeGreaterThanOrEqual(8);
});
