/**
 * The one way into the groups under load: what waits is bounded, what was taken makes room, and one write that cannot be made is told to
 * its caller.
 */
import { expect, it } from "vitest";
import { MakegoodError } from "../../../../src/message/errors.ts";
import { INGEST_MAX } from "../../../../src/recovery/candidates/candidate-state.ts";
import type { NewOccurrence } from "../../../../src/recovery/failures/failure.ts";
import type { Incoming } from "../../../../src/recovery/failures/incoming.ts";
import type { Ingested } from "../../../../src/recovery/failures/ingest.ts";
import { createIntake } from "../../../../src/recovery/failures/intake.ts";
import type { FailurePlaces } from "../../../../src/recovery/failures/place-failures.ts";
import type { GroupIdentity } from "../../../../src/recovery/groups/group.ts";

const AT = { topic: "t/x", sink: "x", errorCode: "E" };
const GROUP: GroupIdentity = { ...AT, fingerprint: "f", failureMatchId: "m", template: "x", topFrame: null, groupRule: null };
const ONE: Ingested = {
  kind: "accepted",
  groupId: 1,
  candidateId: 1,
  failureMatchId: "m",
  occurrenceCount: 1,
  first: false,
  evaluationQueued: false,
  regression: false,
};
const REST = {
  source: "api",
  failureMatchId: null,
  message: null,
  tenantId: null,
  skillId: null,
  errorMessage: "x",
  stackTrace: null,
} as const;
const incoming = (count: number, key: string | null = null): Incoming[] =>
  Array.from({ length: count }, () => ({
    ...REST,
    ...{ failure: { ...AT, errorMessage: "x" }, requestKey: () => key, payloadHash: "0", failurePayload: null, evaluate: false },
  }));

function intakeOver(ingest: (all: readonly NewOccurrence[]) => Promise<Ingested[]>) {
  const place = async (failures: readonly unknown[]) => ({ identities: failures.map(() => GROUP), changed: [] });
  return createIntake({
    recovery: { ingest },
    places: { place } as unknown as FailurePlaces,
    joins: { join: async () => 0 },
    settings: { ids: () => "", rejectedRestMs: 0 },
    joinFailed: () => expect.fail("nothing is joined here"),
    regressed: () => expect.fail("nothing was resolved here"),
  });
}

it("refuses what comes while 20,000 wait, and takes it once they are written", async () => {
  let open = (): void => {};
  const stuck = new Promise<void>((resolve) => {
    open = resolve;
  });
  const sizes: number[] = [];
  const intake = intakeOver(async (all) => {
    await stuck;
    sizes.push(all.length);
    return all.map(() => ONE);
  });
  const taking = (count: number) => Promise.all(incoming(count).map((one) => intake.take(one)));
  const first = taking(INGEST_MAX);
  // A turn later it is being written, and waits no more.
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = Array.from({ length: 100 }, () => taking(INGEST_MAX));
  await expect(taking(1)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
  open();
  for (const taken of [first, ...waiting]) expect(await taken).toHaveLength(INGEST_MAX);
  expect(await taking(1), "there is room again").toEqual([ONE]);
  // What does not fit into one write goes into the next.
  await Promise.all([67, 67, 67].map(taking));
  expect(sizes.slice(-2)).toEqual([INGEST_MAX, 1]);
  expect(Math.max(...sizes)).toBe(INGEST_MAX);
});

it("what cannot be written fails for its caller alone; a store that is away fails for all", async () => {
  const broken = intakeOver(async (all) => {
    if (all.some(({ requestKey }) => requestKey === "bad")) throw new Error("invalid byte sequence");
    return all.map(() => ONE);
  });
  const both = await Promise.allSettled([...incoming(1, "good"), ...incoming(1, "bad")].map((one) => broken.take(one)));
  expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  let calls = 0;
  const away = intakeOver(async () => {
    calls++;
    throw new MakegoodError("store_unavailable", "away");
  });
  const none = await Promise.allSettled(incoming(2).map((one) => away.take(one)));
  expect([none.map(({ status }) => status), calls]).toEqual([["rejected", "rejected"], 1]);
});
