/**
 * Conservation as one thing: the store's own comparison, its witness and the places beside it, one state for all processes, an event for each
 * pass, and a finding while it is broken or not proven.
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import type { Clock } from "../platform/clock.ts";
import {
  type Beside,
  type ConservationReport,
  conservationOf,
  type PassOptions,
  type Whereabouts,
} from "../store/conservation.ts";
import type { Store } from "../store/store.ts";
import { meaningOf } from "./meanings.ts";
import type { Witness } from "./witness.ts";

/** Something beside the store that is held against it; it looks at a bounded part, and says so where it could not. */
export interface Place {
  readonly name: string;
  look(reach: PassOptions["reach"]): Promise<Beside>;
}

export interface Verify {
  /** Joins the pass that is under way in this process, unless more is wanted than that one looks at. */
  run(options: PassOptions): Promise<ConservationReport>;
  running(): boolean;
  /** As the last pass of any process left it; null: none was made, or the store keeps no accounts. */
  last(): Promise<ConservationReport | null>;
  whereabouts(ids: readonly string[]): Promise<Whereabouts[]>;
  /** From what this process heard last. */
  findings(): Finding[];
}

export interface VerifyParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Events;
  readonly witness: Witness | null;
  readonly places: readonly Place[];
}

export const NO_ACCOUNTS = "this store keeps no accounts of what it accepted";

const NO_WITNESS = "There is no witness (MAKEGOOD_WITNESS): that the store was restored to an earlier time would not be found.";

/** What is said of a store that has none. */
const nothingKnown = (now: Date): ConservationReport => ({
  ...{ state: "unknown", reason: NO_ACCOUNTS, since: now, pass: 0, passedAt: null, comparedAt: null, totals: null },
  ...{ divergences: [], divergencesTotal: 0, limits: [] },
});

const RANK = { slice: 0, whole: 1, full: 2 } as const;

export function createVerify({ store, clock, events, witness, places }: VerifyParts): Verify {
  const conservation = conservationOf(store);
  let under: { readonly reach: PassOptions["reach"]; readonly report: Promise<ConservationReport> } | null = null;
  let known: { report: ConservationReport; atMs: number } | null = null;
  /** Why the last pass of this process came to nothing, until any process has made one since; `pass`: the one that stood when first looked at after it. */
  let lost: { readonly reason: string; pass: number | null } | null = null;

  async function pass(options: PassOptions): Promise<ConservationReport> {
    if (!conservation) return nothingKnown(new Date(clock.wallMs()));
    const beside: Record<string, Beside> = {};
    // First, before this pass could write over what the witness saw.
    if (witness) beside.witness = await witness.look(conservation);
    await conservation.pass(options);
    for (const { name, look } of places)
      beside[name] = await look(options.reach).catch((error) => ({ found: [], unknown: errorText(error) }));
    const told = await conservation.conclude(beside);
    const report = witness ? told : { ...told, limits: [...told.limits, NO_WITNESS] };
    const behind = beside.witness?.found.length ?? 0;
    const position = await conservation.position();
    // A store that went back must not be made right by the next line.
    if (witness && position && behind === 0) await witness.write(position);
    return report;
  }

  async function told(options: PassOptions): Promise<ConservationReport> {
    const began = clock.monotonicMs();
    const emit = (state: ConservationReport["state"], divergences: number, reason: string | null): void =>
      events.emit({ type: "conservation", state, divergences, reason, ms: clock.monotonicMs() - began });
    try {
      const report = await pass(options);
      known = { report, atMs: clock.wallMs() };
      lost = null;
      if (conservation) emit(report.state, report.divergencesTotal, report.reason ?? report.divergences[0]?.kind ?? null);
      return report;
    } catch (error) {
      lost = { reason: errorText(error), pass: null };
      emit("unknown", 0, lost.reason);
      throw error;
    }
  }

  /** What stood before a pass that failed is not what the pass would have found. */
  function unlessLost(report: ConservationReport): ConservationReport {
    if (lost) lost.pass ??= report.pass;
    if (lost && report.pass > (lost.pass ?? 0)) lost = null;
    return lost && report.state === "whole" ? { ...report, state: "unknown", reason: lost.reason } : report;
  }

  return {
    async run(options) {
      while (under && RANK[under.reach] < RANK[options.reach]) await under.report.catch(() => undefined);
      if (under) return under.report;
      under = { reach: options.reach, report: told(options).finally(() => (under = null)) };
      return under.report;
    },
    running: () => under !== null,
    async last() {
      const found = (await conservation?.report()) ?? null;
      if (!found) return null;
      const limits = witness ? found.limits : [...found.limits, NO_WITNESS];
      const report = unlessLost({ ...found, limits });
      known = { report, atMs: clock.wallMs() };
      return report;
    },
    whereabouts: async (ids) => (conservation ? conservation.whereabouts(ids) : ids.map(() => "unknown" as const)),
    findings() {
      if (lost !== null) return [finding("conservation_not_proven", `conservation could not be looked at: ${lost.reason}`, null)];
      if (!known || known.report.state === "whole") return [];
      const { state, reason, since, divergencesTotal, divergences } = known.report;
      if (state === "unknown") return [finding("conservation_not_proven", `conservation is not proven: ${reason}`, since)];
      const kinds = [...new Set(divergences.map(({ kind }) => kind))];
      const words = kinds.map((kind) => `${kind} (${meaningOf(kind).means})`).join("; ");
      return [
        finding(
          "conservation_broken",
          `${divergencesTotal} messages do not add up: ${words}; \`makegood verify\` shows which`,
          since,
        ),
      ];
    },
  };
}

const finding = (what: string, reason: string, since: Date | null): Finding => ({
  ...{ what, topic: null, reason, severity: "degraded" },
  sinceMs: since?.getTime() ?? null,
});
