/**
 * The circuit breaker of one topic in one process, and of its tenants that fail alone. Open, it holds messages without spending attempts;
 * the store, which all workers share, lets one of them try one message a second. A success lets two more be tried, and so on; after a
 * few it closes. Here is only what this process saw and what it may do.
 */

import { errorText, isMakegoodError } from "../../message/errors.ts";
import { DEFAULTS, LIMITS } from "../../message/limits.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import { BREAKER_CLOSED, type BreakerState } from "../../message/topic.ts";
import type { Events } from "../../observe/events.ts";
import { backoffMs } from "../../platform/backoff.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { UnderWay } from "../../platform/under-way.ts";
import type { TopicStore } from "../../store/topics.ts";
import type { TopicEntry } from "../../topic/topic-table.ts";
import type { ProbeKind } from "../attempt.ts";
import { Chain, PROBE_MS } from "./chain.ts";
import { Evidence } from "./evidence.ts";
import { neverFailed } from "./note-outcome.ts";
import type { Spot } from "./spots.ts";

export interface BreakerDeps {
  readonly topics: TopicStore;
  readonly owner: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  readonly entry: (name: string) => TopicEntry | undefined;
  /** Something changed that the next plan should see. */
  readonly changed: () => void;
  /** Keeps a call that nobody waits for from being lost at a stop. */
  readonly calls: UnderWay;
}

/** What a breaker is told of an attempt. */
export interface Seen {
  readonly id: string;
  readonly tenantId: string | null;
  /** It never failed before: only such a failure says something about the receiver. */
  readonly first: boolean;
}

/** How long the burst under way when it opens may take to end before the first probe. */
const COOLDOWN_MS = 100;
const ASK_MS = 250;
/** 1 + 2 + 4: after so many successes of a chain of probes it closes. */
const WINS = 7;
const REST = { firstMs: 1_000, maxMs: DEFAULTS.breakerCooldownMs };

/** How long what failed before rests between tries while it is open. */
export function restMs(trips: number): number {
  return backoffMs(REST, trips);
}

export class Breaker {
  readonly #name: string;
  readonly #deps: BreakerDeps;
  readonly #evidence = new Evidence();
  /** Of the topic (null) and of tenants that are held alone. */
  readonly #chains = new Map<string | null, Chain>();
  readonly #calls = new Map<string | null, "trip" | "reset">();
  #announced: BreakerState["state"] = "closed";

  constructor(name: string, deps: BreakerDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  /** Whether it holds anything at all. */
  get holds(): boolean {
    const breaker = this.#deps.entry(this.#name)?.record.breaker;
    return this.#calls.size > 0 || (breaker !== undefined && (breaker.state !== "closed" || breaker.tenants.length > 0));
  }

  /** `one`: only as a probe. */
  admits(nowMs: number, tenantId: string | null = null): "all" | "one" | "none" {
    const held = this.heldAs(tenantId);
    if (held === undefined) return "all";
    if (this.#isLeftAlone(nowMs)) return "none";
    const chain = this.#chains.get(held);
    return chain && (chain.room(nowMs, false) > 0 || chain.room(nowMs, true) > 0) ? "one" : "none";
  }

  /** How many messages may be tried as probes now; the caller that starts them says so with take(). */
  room(nowMs: number, tenantId: string | null, retried: boolean): number {
    const held = this.heldAs(tenantId);
    return held === undefined || this.#isLeftAlone(nowMs) ? 0 : (this.#chains.get(held)?.room(nowMs, retried) ?? 0);
  }

  /** Opened by hand: longer than this process would. What was under way when that happened neither closes it nor calls for more. */
  #isLeftAlone(nowMs: number): boolean {
    const entry = this.#deps.entry(this.#name);
    const { state, probeInMs } = entry?.record.breaker ?? BREAKER_CLOSED;
    return entry !== undefined && state === "open" && entry.seenMs + probeInMs - nowMs > COOLDOWN_MS;
  }

  /** Uses up what room() gave, and says from where they are to be taken. */
  take(tenantId: string | null, count: number): { readonly spot: Spot; readonly kind: ProbeKind } {
    const chain = this.#chain(this.heldAs(tenantId) ?? null);
    chain.credit = Math.max(0, chain.credit - count);
    return { spot: chain.spots.now, kind: chain.kind };
  }

  /** What take() gave and no claim brought: others emptied the lane. Only while the chain goes on: a grant of the store's is for one claim. */
  giveBack(tenantId: string | null, count: number): void {
    const chain = this.#chains.get(this.heldAs(tenantId) ?? null);
    if (chain && chain.wins > 0) chain.credit += count;
  }

  /** How a probe that fails is spared (CON-12); undefined: it is charged. */
  spares(message: ClaimedMessage, kind: ProbeKind): "first" | "stand_in" | undefined {
    if (neverFailed(message)) return "first";
    return kind === "free" ? "stand_in" : undefined;
  }

  /** Proof that the receiver lives: delivered, or an answer about the message itself. */
  proved(tenantId: string | null, nowMs: number): void {
    this.#evidence.lived(tenantId);
    const held = this.heldAs(tenantId);
    if (held === undefined || this.#calls.has(held) || this.#isLeftAlone(nowMs)) return;
    const chain = this.#chain(held);
    chain.wins++;
    chain.losses = 0;
    chain.kind = "charged";
    chain.spots.won();
    if (chain.wins >= WINS) {
      this.#reset(held);
      return;
    }
    chain.grant(2, nowMs);
    this.#lull(held, chain);
    this.#deps.changed();
  }

  failed({ id, tenantId, first }: Seen, nowMs: number, reason: string): void {
    const held = this.heldAs(tenantId);
    if (held !== undefined) {
      const chain = this.#chains.get(held);
      if (!chain || chain.wins === 0) return;
      // It lives, so a failure may be the message's own, and is if it failed before; as many as open it end the chain.
      if (first) chain.losses++;
      if (chain.losses >= DEFAULTS.breakerFailures) chain.end();
      else chain.grant(1, nowMs);
      // Four times at most: those that failed before may go on failing and must not keep it open.
      if (first && chain.wins > 0) this.#lull(held, chain);
      return;
    }
    const verdict = first && this.#deps.entry(this.#name) ? this.#evidence.failed(id, tenantId, nowMs) : null;
    if (verdict) this.#trip(verdict.tenantId, reason);
  }

  /**
   * Asks the store to be the one who tries. Returns how long until it may be asked; Infinity: not held, or no need to. Between their turns
   * those that failed before are tried for nothing, where nobody else is there to be tried.
   */
  seekProbe(nowMs: number, tenantId: string | null = null, retried = false): number {
    const entry = this.#deps.entry(this.#name);
    const held = this.heldAs(tenantId);
    if (!entry || held === undefined || this.#calls.has(held)) return Number.POSITIVE_INFINITY;
    const chain = this.#chain(held);
    if (chain.room(nowMs, retried) > 0) return Number.POSITIVE_INFINITY;
    const inMs = Math.max(entry.seenMs + entry.record.breaker.probeInMs, chain.askedMs + ASK_MS) - nowMs;
    if (inMs > 0) return inMs;
    chain.askedMs = nowMs;
    const charged = retried && nowMs >= chain.restedMs;
    this.#call("breaker_probe", () => this.#ask(entry, held, chain, { retried, charged }, nowMs));
    return Number.POSITIVE_INFINITY;
  }

  async #ask(
    entry: TopicEntry,
    held: string | null,
    chain: Chain,
    { retried, charged }: { readonly retried: boolean; readonly charged: boolean },
    askedMs: number,
  ): Promise<void> {
    const { topics, owner, clock, random } = this.#deps;
    const rest = charged ? restMs(entry.record.breaker.trips) : undefined;
    const grant = (sinceMs: number): void => {
      const before = entry.record.breaker;
      chain.retried = retried;
      chain.kind = retried && !charged ? "free" : "charged";
      chain.spots.move(random);
      chain.grant(1, sinceMs);
      if (rest !== undefined) chain.restedMs = sinceMs + rest;
      const trips = before.trips + (charged ? 1 : 0);
      if (held === null && before.state === "closed") return;
      this.#learn(entry, { ...before, state: held === null ? "half_open" : before.state, probeInMs: PROBE_MS, trips });
    };
    const asking = topics.probe(this.#name, owner, PROBE_MS, { tenantId: held, restMs: rest });
    if (await this.#orAlone(asking, () => grant(clock.monotonicMs()))) grant(clock.monotonicMs());
    // Another process tries one, or what failed before rests: there is time.
    else if (charged) chain.restedMs = askedMs + PROBE_MS;
  }

  /** Whose breaker holds a tenant's messages: null, the topic's. Undefined: nothing does. */
  heldAs(tenantId: string | null): string | null | undefined {
    const breaker = this.#deps.entry(this.#name)?.record.breaker;
    if (!breaker) return undefined;
    const call = this.#calls.get(null);
    if (call === "trip" || (breaker.state !== "closed" && call !== "reset")) return null;
    if (tenantId === null || (breaker.tenants.length === 0 && this.#calls.size === 0)) return undefined;
    const own = this.#calls.get(tenantId);
    if (own === "trip") return tenantId;
    return own !== "reset" && breaker.tenants.some((one) => one.tenantId === tenantId) ? tenantId : undefined;
  }

  #chain(held: string | null): Chain {
    let chain = this.#chains.get(held);
    if (!chain) {
      // Those that other workers let go are not ours to hear of.
      if (this.#chains.size > LIMITS.heldTenantsMax)
        for (const one of this.#chains.keys()) if (this.heldAs(one) !== one) this.#chains.delete(one);
      chain = new Chain();
      this.#chains.set(held, chain);
    }
    return chain;
  }

  /** With nothing left to try for a while, what was tried is all there is to know. */
  #lull(held: string | null, chain: Chain): void {
    chain.lull?.cancel();
    chain.lull = this.#deps.clock.after(PROBE_MS, () => this.#calm(held), true);
  }

  #calm(held: string | null): void {
    const chain = this.#chains.get(held);
    if (!chain || this.#isLeftAlone(this.#deps.clock.monotonicMs())) chain?.end();
    else if (chain.wins > 0 && this.heldAs(held) === held) this.#reset(held);
  }

  #trip(tenantId: string | null, reason: string): void {
    const entry = this.#deps.entry(this.#name);
    if (!entry || this.#calls.has(tenantId)) return;
    if (tenantId === null) this.#evidence.clear();
    this.#chains.get(tenantId)?.end();
    const { tenants, trips } = entry.record.breaker;
    const opened: BreakerState =
      tenantId === null
        ? { state: "open", probeInMs: COOLDOWN_MS, trips: trips + 1, reason, tenants: [] }
        : { ...entry.record.breaker, tenants: [...tenants, { tenantId, reason }] };
    this.#change("trip", tenantId, reason, async () => {
      const tripping = this.#deps.topics.trip(this.#name, COOLDOWN_MS, reason, { tenantId });
      this.#learn(entry, await this.#orAlone(tripping, () => this.#learn(entry, opened)));
    });
  }

  #reset(held: string | null): void {
    const entry = this.#deps.entry(this.#name);
    if (!entry || this.#calls.has(held)) return;
    this.#chains.get(held)?.end();
    this.#change("reset", held, null, async () => {
      const closed = (): void => {
        const { breaker } = entry.record;
        const tenants = breaker.tenants.filter(({ tenantId }) => tenantId !== held);
        this.#learn(entry, held === null ? BREAKER_CLOSED : { ...breaker, tenants });
        this.#chains.set(held, new Chain(this.#chain(held).spots));
      };
      await this.#orAlone(this.#deps.topics.reset(this.#name, { tenantId: held }), closed);
      closed();
    });
  }

  /** While the call is under way what it is about to say holds here. */
  #change(kind: "trip" | "reset", held: string | null, reason: string | null, call: () => Promise<void>): void {
    this.#calls.set(held, kind);
    this.#call(`breaker_${kind}`, () => call().finally(() => this.#calls.delete(held)));
    if (held === null) return;
    const state = kind === "trip" ? "open" : "closed";
    this.#deps.events.emit({ type: "breaker", topic: this.#name, state, reason, tenantId: held });
  }

  /** While the store that all workers share cannot be asked, what this process saw holds for this process; the next refresh brings the store's word. */
  async #orAlone<T>(asked: Promise<T>, alone: () => void): Promise<T> {
    return asked.catch((error) => {
      if (isMakegoodError(error) && error.retryable) alone();
      throw error;
    });
  }

  /** The store's answer, at once: the next refresh would bring the same. */
  #learn(entry: TopicEntry, breaker: BreakerState): void {
    entry.record = { ...entry.record, breaker };
    entry.seenMs = this.#deps.clock.monotonicMs();
    // A probe that failed changes nothing that others need to know.
    if (breaker.state === this.#announced) return;
    const { state, reason } = breaker;
    const said = (what: BreakerState["state"]) =>
      this.#deps.events.emit({ type: "breaker", topic: this.#name, state: what, reason });
    // Another worker probes already: that it opened is news here all the same.
    if (state === "half_open" && this.#announced === "closed") said("open");
    this.#announced = state;
    said(state);
  }

  #call(during: string, call: () => Promise<void>): void {
    const done = call()
      .catch((error) => {
        this.#deps.events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });
      })
      .finally(this.#deps.changed);
    this.#deps.calls.add(done);
  }
}
