/** Sources of gauges: what did not answer, or too long ago, gives nothing, and takes nothing from the others. */
import { expect, it } from "vitest";
import { createLevelSources, DOUBTED_MS, TRUSTED_MS } from "../../../src/observe/level-sources.ts";
import { systemClock } from "../../../src/platform/clock.ts";

it("a source that fails or hangs loses its gauges when they are too old; the others keep theirs", async () => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const sources = createLevelSources(clock);
  let state: "well" | "fails" | "hangs" = "well";
  sources.add({ name: "steady", read: async () => [{ name: "makegood_groups_new", value: 1 }] });
  const remove = sources.add({
    name: "fickle",
    async read() {
      if (state === "hangs") await new Promise(() => {});
      if (state === "fails") throw new Error("away");
      return [{ name: "makegood_approvals_waiting", value: 0 }];
    },
  });
  const names = async (): Promise<string[]> => (await sources.read(5)).levels.map(({ name }) => name);
  const BOTH = ["makegood_groups_new", "makegood_approvals_waiting"];
  expect(await names()).toEqual(BOTH);
  state = "fails";
  nowMs += DOUBTED_MS - 1;
  expect(await names()).toEqual(BOTH);
  nowMs += 2;
  expect(await sources.read(5)).toEqual({
    levels: [{ name: "makegood_groups_new", value: 1 }],
    sources: [
      { name: "steady", up: true },
      { name: "fickle", up: false },
    ],
  });
  state = "well";
  expect(await names()).toEqual(BOTH);
  state = "hangs";
  nowMs += TRUSTED_MS + 1;
  expect(await names()).toEqual(["makegood_groups_new"]);
  remove();
  expect((await sources.read(5)).sources).toEqual([{ name: "steady", up: true }]);
});
