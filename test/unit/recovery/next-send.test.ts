/** What an execution that sends reported failures again does next: the canary alone, then the rest, or nothing more. */
import { expect, it } from "vitest";
import { nextSend } from "../../../src/recovery/candidates/completion.ts";

const sends = { through: 9, canary: 5, failureShareMax: 0.5, notBeforeMs: 0 };
const counts = (waiting: number, sent: number, healed: number, failed: number) => ({ waiting, sent, healed, failed });

it.each([
  ["the canary first", counts(20, 0, 0, 0), 5],
  ["what is left of the canary", counts(18, 2, 0, 0), 3],
  ["nothing until the whole canary has ended", counts(15, 1, 4, 0), "wait"],
  ["the rest when it healed", counts(15, 0, 3, 2), 200],
  ["nothing more when it failed", counts(15, 0, 2, 3), "stop"],
  ["nothing more when too many failed later", counts(5, 3, 5, 7), "stop"],
  ["the end when all have ended", counts(0, 0, 1, 2), "end"],
  ["the end when there was nothing", counts(0, 0, 0, 0), "end"],
  ["nothing while some are under way", counts(0, 4, 9, 9), "wait"],
])("%s", (_, given, expected) => {
  expect(nextSend(sends, given, false)).toBe(expected);
});

it("without a canary all at once, and after a day it ends with what is known", () => {
  expect(nextSend({ ...sends, canary: 0 }, counts(20, 0, 0, 0), false)).toBe(200);
  expect(nextSend(sends, counts(0, 4, 9, 9), true)).toBe("end");
});
