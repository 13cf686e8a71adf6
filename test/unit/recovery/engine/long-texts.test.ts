/**
 * Long texts do not hold up the process: a batch of them is masked in many turns of the event loop, an ordinary one in a single turn.
 */
import { expect, it } from "vitest";
import type { Documents } from "../../../../src/recovery/documents.ts";
import { createFailurePlaces } from "../../../../src/recovery/failures/place-failures.ts";

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
  const nothing = { revision: async () => 0, get: async () => null, put: async () => ({ kind: "done", version: 1 }) };
  const groupRules = async () => ({ rules: [], byId: new Map() });
  const places = createFailurePlaces(nothing as unknown as Documents, groupRules);
  const failures = texts.map((errorMessage) => ({ topic: "t/x", sink: "x", errorCode: "E", errorMessage }));
  return turnsDuring(places.place(failures).then(({ identities }) => expect(identities).toHaveLength(texts.length)));
}

it("lets others run between the texts of a batch when they are long", async () => {
  const long = Array.from({ length: 40 }, (_, n) => `it is late ${"or so ".repeat(680)}${n}`);
  const short = Array.from({ length: 40 }, () => "it is late");
  const [many, few] = [await turnsOf(long), await turnsOf(short)];
  // 40 texts of 4 KiB are ten times what one turn takes, and each pause is at least one turn.
  expect(many - few).toBeGreaterThanOrEqual(8);
});
