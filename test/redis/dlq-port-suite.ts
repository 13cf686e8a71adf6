/**
 * What every adapter of the seeds' port must do, memory and Redis alike. A harness gives the store and moves its clock.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { DLQAlarm, DLQOperations, DLQStore, NewDLQEntry } from "../../src/store/redis/dlq-port/dlq-store.ts";

export interface DLQHarness {
  readonly store: DLQStore & DLQOperations;
  /** Another instance of the service on the same entries; the same one for memory. */
  readonly other: DLQStore & DLQOperations;
  readonly alarms: DLQAlarm[];
  nowMs(): number;
  advance(ms: number): void;
}

export const owed = (id: string, over: Partial<NewDLQEntry> = {}): NewDLQEntry => ({
  reservation_id: id,
  tenant_id: "tenant-1",
  actual_cost_micro: "9007199254740993",
  trace_id: "trace-1",
  reason: "http_503",
  response_status: 503,
  attempt_count: 1,
  ...over,
});

const MINUTE = 60_000;

export function dlqSuite(name: string, open: (options?: { batchLimit?: number }) => Promise<DLQHarness>): void {
  describe(`the seeds' port on ${name}`, () => {
    let h: DLQHarness;
    let store: DLQStore & DLQOperations;
    const iso = (ms: number): string => new Date(ms).toISOString();

    beforeEach(async () => {
      h = await open();
      store = h.store;
    });

    it("keeps what it was given and gives it back unchanged", async () => {
      const created_at = iso(h.nowMs() - 5_000);
      const next_attempt_at = iso(h.nowMs() + MINUTE);
      const entry = owed("r-1", { trace_id: 'ü "quoted" \u0000 \n', response_status: null, created_at, next_attempt_at });
      expect(await store.put(entry)).toBe("created");
      expect(await store.get("r-1")).toEqual(entry);
      expect(await store.get("r-2")).toBeNull();
      expect(await store.count()).toBe(1);
    });

    it("DF-24: integers of any size and empty lists come back as the same text", async () => {
      const costs = ["100000000000000", "123456789012345678901234567890", "-5", "1e3", "[]", ""];
      for (const [i, cost] of costs.entries()) await store.put(owed(`r-${i}`, { actual_cost_micro: cost }));
      for (const [i, cost] of costs.entries()) {
        const claim = await store.claimForReplay(`r-${i}`);
        await store.incrementAttempt(`r-${i}`, claim?.token as string, { delayMs: 0 });
        expect((await store.get(`r-${i}`))?.actual_cost_micro).toBe(cost);
      }
    });

    it("DF-16: a repeated put touches neither attempts nor schedule", async () => {
      await store.put(owed("r-1"), { delayMs: 10 * MINUTE });
      const before = await store.get("r-1");
      expect(await h.other.put(owed("r-1", { reason: "timeout", trace_id: "trace-2" }), { delayMs: 0 })).toBe("exists");
      expect(await store.get("r-1")).toEqual(before);
      expect(await store.getReady()).toEqual([]);
    });

    it("DF-17: another cost or tenant is a conflict: the first stands, the second is kept in quarantine, once", async () => {
      await store.put(owed("r-1"));
      const first = await store.get("r-1");
      expect(await store.put(owed("r-1", { actual_cost_micro: "2" }))).toBe("conflict");
      expect(await store.put(owed("r-1", { actual_cost_micro: "2" }))).toBe("conflict");
      const at = iso(h.nowMs());
      h.advance(1);
      expect(await store.put(owed("r-1", { tenant_id: "tenant-2" }))).toBe("conflict");
      expect(await store.get("r-1")).toEqual(first);
      expect(h.alarms.map(({ kind, reservation_id }) => [kind, reservation_id])).toEqual(Array(3).fill(["conflict", "r-1"]));
      const kept = await store.listQuarantine();
      expect(kept.map(({ fields }) => [fields.tenant_id, fields.actual_cost_micro])).toEqual([
        ["tenant-1", "2"],
        ["tenant-2", "9007199254740993"],
      ]);
      expect(kept[0]).toMatchObject({ kind: "conflict", reservation_id: "r-1", at });
    });

    it("lists what is due, oldest first, and only that", async () => {
      for (const [id, delayMs] of [
        ["late", 3],
        ["early", 1],
        ["later", MINUTE],
      ] as const)
        await store.put(owed(id), { delayMs });
      expect(await store.getReady()).toEqual([]);
      h.advance(3);
      expect((await store.getReady()).map(({ reservation_id }) => reservation_id)).toEqual(["early", "late"]);
      expect((await store.getReady(new Date(h.nowMs() - 1))).map(({ reservation_id }) => reservation_id)).toEqual(["early"]);
    });

    it("DF-26: a caller whose clock runs ahead brings nothing forward", async () => {
      await store.put(owed("r-1"), { delayMs: MINUTE });
      expect(await store.getReady(new Date(h.nowMs() + 3_600_000))).toEqual([]);
      expect(await store.claimForReplay("r-1")).toBeNull();
    });

    it("FIN-16: a batch has its limit", async () => {
      const small = await open({ batchLimit: 3 });
      for (let i = 0; i < 7; i++) await small.store.put(owed(`r-${i}`), { delayMs: i });
      small.advance(10);
      expect(small.store.maxRetries).toBe(5);
      expect((await small.store.getReady()).map(({ reservation_id }) => reservation_id)).toEqual(["r-0", "r-1", "r-2"]);
    });

    it("DF-8: the oldest age is by created_at, whatever the schedule says", async () => {
      expect(await store.oldestEntryAgeMs()).toBeNull();
      await store.put(owed("new", { created_at: iso(h.nowMs() - 10) }));
      await store.put(owed("old", { created_at: iso(h.nowMs() - 7_000) }), { delayMs: MINUTE });
      expect(await store.oldestEntryAgeMs()).toBe(7_000);
      h.advance(500);
      expect(await store.oldestEntryAgeMs()).toBe(7_500);
      h.advance(MINUTE);
      const claim = await store.claimForReplay("old");
      await store.delete("old", claim?.token);
      expect(await store.oldestEntryAgeMs()).toBe(10 + 500 + MINUTE);
    });

    it("DF-4: an overtaken holder changes nothing, whatever it tries", async () => {
      await store.put(owed("r-1"));
      const stale = await store.claimForReplay("r-1", 1_000);
      h.advance(1_000);
      const live = await h.other.claimForReplay("r-1", MINUTE);
      expect(live?.token).not.toBe(stale?.token);
      const token = stale?.token as string;
      expect(await store.releaseClaim("r-1", token)).toBe(false);
      expect(await store.extendClaim("r-1", token, MINUTE)).toBe(false);
      expect(await store.incrementAttempt("r-1", token, { delayMs: 0 })).toBeNull();
      expect(await store.delete("r-1", token)).toBe(false);
      expect(await store.terminalDrop("r-1", token, "exhausted")).toBe(false);
      expect(await store.get("r-1")).toEqual(live?.entry);
      expect(await store.incrementAttempt("r-1", live?.token as string, { delayMs: MINUTE })).toBe(2);
      for (const empty of ["", "x"]) expect(await store.releaseClaim("r-1", empty)).toBe(false);
      expect(await store.releaseClaim("r-1", live?.token as string)).toBe(true);
      expect(await store.releaseClaim("r-1", live?.token as string)).toBe(false);
    });

    it("DF-5: a claim can be renewed; without renewal it ends with its lease", async () => {
      await store.put(owed("r-1"));
      const claim = await store.claimForReplay("r-1", 10_000);
      h.advance(9_000);
      expect(await store.extendClaim("r-1", claim?.token as string, 10_000)).toBe(true);
      h.advance(9_000);
      expect(await h.other.claimForReplay("r-1")).toBeNull();
      h.advance(1_000);
      expect(await h.other.claimForReplay("r-1")).toMatchObject({ abandoned: 1 });
    });

    it("DF-6: a claim judges afresh: not due, held or gone is no claim, and the entry is as it stands now", async () => {
      await store.put(owed("r-1"));
      const [listed] = await store.getReady();
      const claim = await h.other.claimForReplay("r-1");
      expect(await store.claimForReplay("r-1")).toBeNull();
      expect(await store.getReady()).toEqual([]);
      await h.other.incrementAttempt("r-1", claim?.token as string, { delayMs: MINUTE });
      await h.other.releaseClaim("r-1", claim?.token as string);
      expect(await store.claimForReplay("r-1")).toBeNull();
      h.advance(MINUTE);
      const again = await store.claimForReplay("r-1");
      expect(again?.entry.attempt_count).toBe((listed?.attempt_count ?? 0) + 1);
      await store.delete("r-1", again?.token);
      expect(await store.claimForReplay("r-1")).toBeNull();
    });

    it("FIN-26: an attempt raises the count and moves the schedule, by a delay or to a date", async () => {
      await store.put(owed("r-1"));
      const claim = await store.claimForReplay("r-1");
      const token = claim?.token as string;
      expect(await store.incrementAttempt("r-1", token, { delayMs: 120_000 })).toBe(2);
      expect((await store.get("r-1"))?.next_attempt_at).toBe(iso(h.nowMs() + 120_000));
      expect(await store.incrementAttempt("r-1", token, new Date(h.nowMs() + 5))).toBe(3);
      await store.releaseClaim("r-1", token);
      h.advance(5);
      expect(await store.getReady()).toMatchObject([{ reservation_id: "r-1", attempt_count: 3 }]);
    });

    it("CON-27: a claim whose attempt was counted is not called abandoned", async () => {
      await store.put(owed("r-1"));
      const claim = await store.claimForReplay("r-1", 1_000);
      await store.incrementAttempt("r-1", claim?.token as string, { delayMs: 0 });
      h.advance(1_000);
      expect(await store.claimForReplay("r-1", 1_000)).toMatchObject({ abandoned: 0, entry: { attempt_count: 2 } });
      h.advance(1_000);
      expect(await store.claimForReplay("r-1", 1_000)).toMatchObject({ abandoned: 1, entry: { attempt_count: 2 } });
    });

    it("DF-7: what is claimed is neither dropped nor deleted by others", async () => {
      await store.put(owed("r-1"));
      const claim = await store.claimForReplay("r-1");
      expect(await h.other.terminalDrop("r-1", null, "exhausted")).toBe(false);
      expect(await h.other.delete("r-1")).toBe(false);
      expect(await store.terminalDrop("r-1", claim?.token as string, "exhausted")).toBe(true);
      expect(await store.terminalDrop("r-1", claim?.token as string, "exhausted")).toBe(false);
      expect(await store.count()).toBe(0);
    });

    it("DF-3: a terminal record never expires while open, can be listed, replayed and resolved with who and why", async () => {
      for (const id of ["a", "b"]) await store.put(owed(id, { attempt_count: 5 }));
      for (const id of ["a", "b"]) {
        expect(await store.terminalDrop(id, null, "exhausted after 5")).toBe(true);
        h.advance(1);
      }
      h.advance(400 * 24 * 3_600_000);
      expect((await store.listTerminal()).map(({ reservation_id }) => reservation_id)).toEqual(["a", "b"]);
      expect(await store.listTerminal(1, 1)).toMatchObject([{ reservation_id: "b" }]);
      expect(await store.getTerminal("a")).toMatchObject({ terminal_reason: "exhausted after 5", resolution: "open" });
      expect(await store.put(owed("a"))).toBe("exists");
      expect(await store.put(owed("a", { actual_cost_micro: "1" }))).toBe("conflict");

      expect(await store.replayTerminal("a")).toBe(true);
      expect(await store.replayTerminal("a")).toBe(false);
      const claim = await store.claimForReplay("a");
      expect(claim?.entry).toMatchObject({ attempt_count: 0, actual_cost_micro: "9007199254740993" });
      await store.terminalDrop("a", claim?.token as string, "again");
      expect(await store.getTerminal("a")).toMatchObject({ attempts_before: 5, terminal_reason: "again" });

      const how = { as: "discarded", actor: "ada", reason: "written off" } as const;
      expect(await store.resolveTerminal("b", how)).toBe(true);
      expect(await store.resolveTerminal("b", how)).toBe(false);
      expect(await store.replayTerminal("b")).toBe(false);
      expect(await store.getTerminal("b")).toMatchObject({
        resolution: "discarded",
        resolved_by: "ada",
        resolved_reason: "written off",
      });
      expect((await store.listTerminal()).map(({ reservation_id }) => reservation_id)).toEqual(["a"]);
    });

    it("CON-9: a rejection for good becomes a terminal record in one write", async () => {
      expect(await store.put(owed("r-1"), { terminal: "http_422" })).toBe("created");
      expect(await store.count()).toBe(0);
      expect(await store.getReady()).toEqual([]);
      expect(await store.listTerminal()).toMatchObject([{ reservation_id: "r-1", terminal_reason: "http_422" }]);
    });

    it("FIN-23: delete leaves nothing behind, and the reservation may come again", async () => {
      await store.put(owed("r-1"));
      const claim = await store.claimForReplay("r-1");
      expect(await store.delete("r-1", claim?.token)).toBe(true);
      expect(await store.delete("r-1")).toBe(false);
      expect(await store.gauges()).toEqual({ due: 0, waiting: 0, claimed: 0, terminal: 0, quarantined: 0 });
      expect(await store.put(owed("r-1", { actual_cost_micro: "7" }))).toBe("created");
      expect(await store.claimForReplay("r-1")).toMatchObject({ abandoned: 0, entry: { actual_cost_micro: "7" } });
    });

    it("DF-33: gauges tell the states apart", async () => {
      for (const id of ["due", "waiting", "claimed", "terminal"]) {
        await store.put(owed(id), { delayMs: id === "waiting" ? MINUTE : 0 });
      }
      await store.claimForReplay("claimed");
      await store.terminalDrop("terminal", null, "exhausted");
      await store.put(owed("due", { tenant_id: "other" }));
      expect(await store.gauges()).toEqual({ due: 1, waiting: 1, claimed: 1, terminal: 1, quarantined: 1 });
      expect(await store.count()).toBe(3);
    });

    it("DF-13: an entry replayed again and again comes to its end", async () => {
      await store.put(owed("r-1", { attempt_count: 0 }));
      let rounds = 0;
      for (let count = 0; count < store.maxRetries; rounds++) {
        h.advance(MINUTE);
        const [ready] = await store.getReady();
        const claim = await store.claimForReplay(ready?.reservation_id as string);
        count = (await store.incrementAttempt("r-1", claim?.token as string, { delayMs: MINUTE })) as number;
        if (count >= store.maxRetries) await store.terminalDrop("r-1", claim?.token as string, "exhausted");
        else await store.releaseClaim("r-1", claim?.token as string);
      }
      expect(rounds).toBe(5);
      expect(await store.getTerminal("r-1")).toMatchObject({ attempt_count: 5, terminal_reason: "exhausted" });
    });

    it("DF-4: of twenty that claim at once, one gets it", async () => {
      await store.put(owed("r-1"));
      const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? store : h.other).claimForReplay("r-1")));
      expect(claims.filter((claim) => claim !== null)).toHaveLength(1);
    });

    it("DF-18: what cannot be an entry is refused with what to do, never mixed with others", async () => {
      const wrong: Partial<NewDLQEntry>[] = [
        { reservation_id: "" },
        { reservation_id: "x".repeat(256) },
        { reservation_id: undefined as unknown as string },
        { actual_cost_micro: 5 as unknown as string },
        { tenant_id: "\ud800" },
        { attempt_count: -1 },
        { response_status: 1.5 },
        { created_at: "yesterday" },
        { next_attempt_at: "2026-01-01" },
      ];
      for (const over of wrong) await expect(store.put(owed("r-1", over))).rejects.toMatchObject({ code: "invalid_message" });
      await expect(store.claimForReplay("r-1", 0)).rejects.toMatchObject({ code: "invalid_message" });
      expect(await store.count()).toBe(0);
    });

    it("finds nothing to mend where nothing is wrong", async () => {
      for (let i = 0; i < 5; i++) await store.put(owed(`r-${i}`), { delayMs: i });
      await store.claimForReplay("r-0");
      expect(await store.reconcile()).toEqual({ checked: 5, mended: 0, quarantined: 0 });
      expect(h.alarms).toEqual([]);
    });
  });
}
