/**
 * Runs random commands on a store beside the model, for any store: hand in a factory of fresh, open, empty ones. A failure
 * prints the seed and the shortest list of commands that shows it.
 */
import fc from "fast-check";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Store } from "../../src/store/store.ts";
import { TOPICS } from "../../src/testing/store-conformance/fixtures.ts";
import { storeCommands } from "./commands.ts";
import { agrees, Model, type Real } from "./model.ts";

export interface ModelRunOptions {
  readonly runs?: number;
  readonly commandsMax?: number;
  readonly seed?: number;
}

export async function runStoreModel(open: () => Promise<Store>, options: ModelRunOptions = {}): Promise<void> {
  const { runs = 300, commandsMax = 120, seed } = options;
  const commands = fc.commands(storeCommands, { maxCommands: commandsMax, size: "max" });
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      const store = await open();
      try {
        for (const topic of TOPICS) await store.topics.put(topic, "code");
        const startMs = systemClock.wallMs();
        const model = new Model();
        // Ids are made by the model's clock: after days of retention they are days younger too. Two producers whose clocks differ take turns.
        const makers = [0, 250].map((off) => createIds({ ...systemClock, wallMs: () => startMs + model.nowMs + off }));
        let made = 0;
        const nextId = () => (makers[++made % 2] as () => string)();
        const real: Real = { store, startMs, nextId };
        await fc.asyncModelRun(() => ({ model, real }), list);
        for (const entry of model.entries.values()) await agrees(entry, real);
      } finally {
        await store.close();
      }
    }),
    { numRuns: runs, ...(seed === undefined ? {} : { seed }) },
  );
}
