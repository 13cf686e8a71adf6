/**
 * One deliver() call, step by step: build the message, attempt it under the caller's own claim if nothing stands in the way, and hand it down
 * as what became of it. With `storeFirst` it is kept first, then claimed by its id, attempted and settled, on whatever rung it landed.
 */
import { inspect } from "node:util";
import { conclude } from "../message/conclude.ts";
import { errorText, isMakegoodError } from "../message/errors.ts";
import { DEFAULTS, LIMITS } from "../message/limits.ts";
import type { ClaimedMessage, NewMessage } from "../message/message.ts";
import type { Settle } from "../message/settlement.ts";
import type { Events } from "../observe/events.ts";
import { type Clock, within } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { Ladder, PutDown } from "../store/fallback.ts";
import type { Store, WorkStore } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";
import type { TopicEntry, TopicTable } from "../topic/topic-table.ts";
import type { Breakers } from "../worker/breaker/breakers.ts";
import type { MessageBuilder } from "./build-message.ts";
import type { DeliverOptions, DeliverResult } from "./deliver.ts";
import { DirectAttempts, EXTRA_MS, type Obstacle, type Tried } from "./direct-attempt.ts";
import { createDirectLimits, type DirectLimits } from "./direct-limits.ts";

export interface DeliverDeps {
  readonly store: Store;
  readonly ladder: Ladder;
  readonly topics: TopicTable;
  readonly breakers: Breakers;
  readonly builder: MessageBuilder;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
}

/** What is kept of the budget for the rungs below the sink. */
const RUNGS_MS = 1_500;
/** How long a topic that is not known here may be asked for. */
const ASK_MS = 500;

/** One call: what it was given, and until when it must be over. */
interface Call {
  readonly message: NewMessage;
  readonly entry: TopicEntry | undefined;
  readonly options: DeliverOptions;
  readonly timeoutMs: number;
  readonly untilMs: number;
}

type Direct = Pick<DeliverResult, "code" | "error" | "status" | "tries" | "body">;
const NOT_TRIED: Direct = { code: null, error: null, status: null, tries: 0, body: null };

export class DirectDelivery {
  readonly #deps: DeliverDeps;
  readonly #attempts: DirectAttempts;
  readonly #limits: DirectLimits;
  readonly #owner: string;

  constructor(deps: DeliverDeps) {
    this.#deps = deps;
    this.#attempts = new DirectAttempts(deps);
    this.#owner = `deliver-${deps.ids()}`;
    this.#limits = createDirectLimits(deps.store.topics, this.#owner, deps.clock);
  }

  async run(topic: AnyTopic | string, payload: unknown, options: DeliverOptions): Promise<DeliverResult> {
    const startedMs = this.#deps.clock.monotonicMs();
    const made = await this.#build(topic, payload, options);
    if ("refusal" in made)
      return this.refuse(topic, options.payloadText ?? textOf(payload), options, codeOf(made.refusal), errorText(made.refusal));
    const { spans } = this.#deps.events;
    if (spans === null) return this.#run(made.message, options, startedMs);
    const refusal = ({ kind, code }: DeliverResult): string | null => (kind === "refused" ? code : null);
    return spans.sent([made.message], ([message]) => this.#run(message as NewMessage, options, startedMs), refusal);
  }

  async #run(message: NewMessage, options: DeliverOptions, startedMs: number): Promise<DeliverResult> {
    const entry = this.#deps.topics.entry(message.topic);
    const topicMs = entry?.timeoutMs ?? DEFAULTS.attemptTimeoutMs;
    const askedMs = Math.min(positive(options.timeoutMs) ?? topicMs, topicMs);
    const budgetMs = positive(options.budgetMs) ?? askedMs + RUNGS_MS;
    // The rungs need their time too, in a budget of whatever size.
    const timeoutMs = Math.max(1, Math.min(askedMs, budgetMs - Math.min(RUNGS_MS, budgetMs / 2)));
    const call: Call = { message, entry, options, timeoutMs, untilMs: startedMs + budgetMs };
    const obstacle = this.#obstacle(call);
    if (obstacle !== null) return this.#store(call, message, { ...NOT_TRIED, ...obstacle });
    const { unpaced = false } = options;
    const entered = unpaced ? null : await this.#limits.enter(entry as TopicEntry, message.tenantId, timeoutMs);
    if (entered && entered.obstacle !== null) return this.#store(call, message, { ...NOT_TRIED, ...entered.obstacle });
    try {
      // An unknown outcome that must be held can only be held under a claim.
      return await (options.storeFirst === true || holdsUnknown(call) ? this.#storeFirst(call) : this.#tryFirst(call));
    } finally {
      entered?.leave();
    }
  }

  refuse(topic: AnyTopic | string, text: string, options: DeliverOptions, code: string, error: string): DeliverResult {
    const { ids, ladder, events } = this.#deps;
    const name = String(typeof topic === "string" ? topic : topic?.name);
    const id = typeof options?.id === "string" ? options.id : ids();
    const key = typeof options?.key === "string" ? options.key : id;
    ladder.logUnkept(`${code}: ${error}`, { id, topic: name, key, tenant_id: options?.tenantId ?? null, code }, text);
    events.emit({ type: "handed_down", topic: name, id, rung: "none", survives: "nothing", code });
    return { kind: "refused", id, key, code, error, status: null, stored: null, survives: "nothing", tries: 0, body: null };
  }

  async #build(
    topic: AnyTopic | string,
    payload: unknown,
    options: DeliverOptions,
  ): Promise<{ message: NewMessage } | { refusal: unknown }> {
    const { builder, ids } = this.#deps;
    // One id for the whole call, whatever has to be built again.
    const fields = { ...options, id: options.id ?? ids() };
    const name = typeof topic === "string" ? topic : topic.name;
    try {
      const { payloadText: text } = options;
      const making =
        text === undefined
          ? builder.fromValue(topic, payload, fields)
          : builder.fromText({ ...fields, topic: name, payloadText: text });
      const message = making instanceof Promise ? await within(this.#deps.clock, making, ASK_MS) : making;
      return { message: message ?? builder.unasked(name, payload, fields) };
    } catch (error) {
      if (!isMakegoodError(error) || !error.retryable) return { refusal: error };
      return { message: builder.unasked(name, payload, fields) };
    }
  }

  /** Why the sink is not tried at once; null: it is. */
  #obstacle({ message, entry, options }: Call): Obstacle | null {
    const no = (code: string, error: string) => ({ code, error });
    if (!entry) return no("topic_not_known_here", "the topic cannot be looked up now");
    if (message.delayMs > 0) return no("delayed", "it is to be delivered later");
    if (message.orderingKey !== null) return no("ordered", "it waits for its turn among those with its ordering key");
    if (options.signal?.aborted) return no("aborted", "the caller's signal was aborted");
    return this.#attempts.obstacle(entry, message.tenantId);
  }

  /** Under the caller's own claim: nothing is stored of what was delivered, and everything else as what the attempt made of it. */
  async #tryFirst(call: Call): Promise<DeliverResult> {
    const { message } = call;
    const { tried, settle } = await this.#attempt(call, ownClaim(message), call.timeoutMs);
    const direct = directOf(tried);
    const { code, error } = direct;
    const { settlement } = settle;
    switch (settlement.kind) {
      case "delivered":
        return ended(settlement.outcome, message, direct);
      case "dead":
        return this.#store(call, { ...message, directTry: { code, error, rejected: true } }, direct);
      case "release":
        // Nobody tried: a process that can deliver it finds it due, with no try of ours on its record.
        return this.#store(call, message, { ...direct, tries: 0 });
      default: {
        const delayMs = settlement.kind === "retry" ? settlement.delayMs : 0;
        return this.#store(call, { ...message, delayMs, directTry: { code, error } }, direct);
      }
    }
  }

  /** From a claim to an outcome and what is to be written. */
  async #attempt(
    { entry, options }: Call,
    claimed: ClaimedMessage,
    timeoutMs: number,
  ): Promise<{ tried: Tried; settle: Settle }> {
    const { random, events } = this.#deps;
    const topic = entry as TopicEntry;
    const tried = await this.#attempts.run(topic, claimed, timeoutMs, options.signal);
    const { outcome, tries, ms } = tried;
    const { code, error } = directOf(tried);
    if (tries > 0)
      events.emit({ type: "direct", topic: topic.name, id: claimed.id, outcome: outcome.kind, tries, ms, code, error });
    return {
      tried,
      settle: conclude({ ...claimed, probe: tried.probe ? "first" : undefined }, outcome, topic.rules, random.next(), ms),
    };
  }

  /** Down the ladder. */
  async #store(call: Call, message: NewMessage, direct: Direct): Promise<DeliverResult> {
    const { ladder, clock } = this.#deps;
    const put = await ladder.put({ message, atMs: clock.wallMs() }, call.untilMs);
    return this.#stored(call, message, direct, put);
  }

  async #stored(call: Call, message: NewMessage, direct: Direct, put: PutDown): Promise<DeliverResult> {
    const { events } = this.#deps;
    const { topic, key } = message;
    if (put.kind !== "stored") {
      const code = put.kind === "conflict" ? "key_conflict" : put.code;
      const error = put.kind === "conflict" ? `its key belongs to message ${put.id}, which has another payload` : put.error;
      const { id } = message;
      const fields = { ...call.options, id, key };
      if (put.kind === "conflict") {
        events.emit({ type: "quarantined", rung: put.rung, topic, id, key, reason: error });
        return { ...this.refuse(topic, message.payload, fields, code, error), tries: direct.tries };
      }
      events.emit({ type: "handed_down", topic, id, rung: "none", survives: "nothing", code });
      return { ...direct, kind: "refused", id, key: key ?? id, code, error, stored: null, survives: "nothing" };
    }
    const { id, rung, survives, duplicate } = put;
    events.emit({ type: "handed_down", topic, id, rung, survives, code: direct.code });
    if (rung === "primary") events.emit({ type: "accepted", topic, inserted: duplicate ? 0 : 1, duplicate: duplicate ? 1 : 0 });
    const fresh = message.directTry?.rejected === true ? "dead" : "queued";
    const kind = duplicate && rung === "primary" ? await this.#standing(id, call.untilMs) : fresh;
    return { ...direct, kind, id, key: key ?? id, stored: rung, survives };
  }

  /** What became of the message that had the key first. */
  async #standing(id: string, untilMs: number): Promise<DeliverResult["kind"]> {
    const { store, clock } = this.#deps;
    const view = await within(this.#deps.clock, store.get(id), untilMs - clock.monotonicMs()).catch(() => null);
    if (view?.status === "delivered") return "duplicate";
    return view?.status === "dead" ? "dead" : "queued";
  }

  /** Kept first, out of the workers' reach for the length of a lease; then taken by its id and tried like any attempt. */
  async #storeFirst(call: Call): Promise<DeliverResult> {
    const { ladder, clock } = this.#deps;
    const leaseMs = Math.max(LIMITS.leaseMsMin, Math.ceil(call.timeoutMs + EXTRA_MS + RUNGS_MS));
    const message = { ...call.message, delayMs: leaseMs };
    const put = await ladder.put({ message, atMs: clock.wallMs() }, call.untilMs - Math.min(call.timeoutMs, RUNGS_MS / 2));
    const stored = await this.#stored(call, message, NOT_TRIED, put);
    if (stored.kind !== "queued" || stored.id !== message.id) return stored;
    const rung = put.kind === "stored" ? put.rung : "primary";
    if (rung !== "primary" && holdsUnknown(call)) return { ...stored, ...UNHELD };
    return this.#claimed(call, ladder.storeOf(rung), leaseMs, stored);
  }

  /** Its first attempt, under a claim of the store that has it. */
  async #claimed(call: Call, store: WorkStore, leaseMs: number, stored: DeliverResult): Promise<DeliverResult> {
    const { clock } = this.#deps;
    const request = { owner: this.#owner, leaseMs, lanes: [], ids: [stored.id] };
    const [claimed] = (await within(clock, store.claim(request), call.untilMs - clock.monotonicMs()).catch(() => null)) ?? [];
    if (!claimed) return { ...stored, ...NOT_CLAIMED };
    const { tried, settle } = await this.#attempt(call, claimed, this.#leftMs(call));
    // Not settled in time: the lease ends, the message comes back with the same key, and the receiver knows it.
    await within(clock, store.settle([settle]), call.untilMs - clock.monotonicMs()).catch(() => null);
    const direct = directOf(tried);
    const { settlement } = settle;
    if (settlement.kind !== "delivered") return { ...stored, ...direct, kind: settlement.kind === "dead" ? "dead" : "queued" };
    // What was delivered from the journal or from memory is nowhere any more.
    const gone = stored.stored === "journal" || stored.stored === "memory";
    return gone ? ended(settlement.outcome, call.message, direct) : { ...stored, ...direct, kind: settlement.outcome };
  }

  #leftMs({ timeoutMs, untilMs }: Call): number {
    return Math.max(1, Math.min(timeoutMs, untilMs - this.#deps.clock.monotonicMs() - RUNGS_MS / 5));
  }
}

const NOT_CLAIMED = { code: "not_claimed", error: "it is stored and was not tried at once" } as const;
const UNHELD = {
  code: "not_tried_below",
  error: "its topic holds unknown outcomes, which only the primary store can do: it is tried when that has it",
} as const;

const holdsUnknown = ({ entry }: Call): boolean => entry?.rules.onUnknown === "hold";

/** The right to attempt it is the caller's: nobody else has it yet. Its number is 0, and its wait stands before attempt 1. */
function ownClaim(message: NewMessage): ClaimedMessage {
  const claim = { lease: "", token: "" };
  return { ...message, claim, lane: "", attempt: 0, base: 0, handedDown: true, suspicion: 0, retried: false };
}

function ended(kind: "delivered" | "duplicate", { id, key }: NewMessage, direct: Direct): DeliverResult {
  return { ...direct, kind, id, key: key ?? id, stored: null, survives: "nothing" };
}

function directOf({ outcome, tries }: Tried): Direct {
  const {
    code = null,
    error = null,
    status,
    body,
  } = outcome as { code?: string; error?: string; status?: number; body?: string };
  const fromCode = /^http_([0-9]{3})$/.exec(code ?? "")?.[1];
  return { code, error, status: status ?? (fromCode === undefined ? null : Number(fromCode)), tries, body: body ?? null };
}

function positive(ms: number | undefined): number | undefined {
  return typeof ms === "number" && ms > 0 && ms <= LIMITS.leaseMsMax ? ms : undefined;
}

export const codeOf = (error: unknown): string => (isMakegoodError(error) ? error.code : "invalid_message");

/** Whatever it is, as text: as JSON where that is possible. */
export function textOf(payload: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(payload, (_, value) => (typeof value === "bigint" ? String(value) : value));
    if (text !== undefined) return text;
  } catch {
    // Circular, or a toJSON that throws: the next best way to show it.
  }
  try {
    return inspect(payload, { depth: 50, maxArrayLength: null, maxStringLength: null });
  } catch {
    return "(a payload that cannot be shown)";
  }
}
