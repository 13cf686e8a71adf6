/**
 * Another store beside the memory store: gets every call that the memory store got, at the same moments, and must give the same answers as
 * far as the seam promises them. Ids are moved to the server's own days; leases, tokens and lane names are each store's own and are
 * mapped. Where a claim may choose, it must choose well; afterwards both hold the same.
 */

import { released } from "../../src/message/conclude.ts";
import type { Claim, ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import type { Settle } from "../../src/message/settlement.ts";
import { idFloor, idTimeMs } from "../../src/platform/ids.ts";
import type { ClaimRequest, Lane, Store } from "../../src/store/store.ts";
import type { Ledger } from "./ledger.ts";

export class Difference extends Error {}

type Identity = Pick<Lane, "topic" | "tenantId" | "priority" | "suspicion" | "retried" | "ordered">;

const identityOf = ({ topic, tenantId, priority, suspicion, retried, ordered }: Identity): string =>
  JSON.stringify([topic, tenantId, priority, suspicion, retried, ordered]);

/** What two claims of one message must have in common. */
const factsOf = ({
  topic,
  tenantId,
  priority,
  key,
  orderingKey,
  payload,
  attempt,
  base,
  handedDown,
  suspicion,
  retried,
}: ClaimedMessage) =>
  JSON.stringify([topic, tenantId, priority, key, orderingKey, payload, attempt, base, handedDown, suspicion, retried]);

/** How often a store may come up short before what it did not bring counts as hidden. */
const TRIES = 5;

export class Twin {
  readonly store: Store;
  readonly #shiftMs: number;
  readonly #ledger: Ledger;
  /** The memory store's lease, token and message → this store's claim of that message. */
  readonly #claims = new Map<string, Claim>();

  /** Claimed and not what the memory store took. */
  readonly #unwanted: Settle[] = [];

  /** `ledger`: how things stand before the call that is made next. */
  constructor(store: Store, shiftMs: number, ledger: Ledger) {
    this.store = store;
    this.#shiftMs = shiftMs;
    this.#ledger = ledger;
  }

  at(atMs: number): { readonly now: Date } {
    return { now: new Date(atMs + this.#shiftMs) };
  }

  id(id: string): string {
    return idFloor(idTimeMs(id) + this.#shiftMs).slice(0, 13) + id.slice(13);
  }

  readonly back = (id: string): string => idFloor(idTimeMs(id) - this.#shiftMs).slice(0, 13) + id.slice(13);

  async enqueue(messages: readonly NewMessage[], atMs: number, atomic?: "all" | "each") {
    const answer = await this.store.enqueue(
      messages.map((message) => ({ ...message, id: this.id(message.id) })),
      { atomic, ...this.at(atMs) },
    );
    return answer.map(({ kind, id }) => ({ kind, id: this.back(id) }));
  }

  async lanes(expected: readonly Lane[], atMs: number): Promise<void> {
    const found = new Map((await this.store.lanes(this.at(atMs))).map((lane) => [identityOf(lane), lane]));
    for (const lane of expected) {
      const other = found.get(identityOf(lane));
      if (!other) throw new Difference(`lane ${identityOf(lane)} is not listed`);
      // A due time in the past is not compared: what is released may be due where it was, or now.
      const [mine, its] = [Math.max(0, lane.dueInMs), Math.max(0, other.dueInMs)];
      const fits = lane.ordered ? its <= mine + 1 : Math.abs(its - mine) <= 1;
      if (!fits) throw new Difference(`lane ${identityOf(lane)} is due in ${other.dueInMs}, not in ${lane.dueInMs}`);
      found.delete(identityOf(lane));
    }
    for (const lane of found.values())
      if (!lane.ordered) throw new Difference(`lane ${identityOf(lane)} is listed, and nothing waits there`);
  }

  /** Both hold what the memory store took, or this store hides it. */
  async claim(request: ClaimRequest, expected: readonly ClaimedMessage[], atMs: number): Promise<void> {
    const taken = await this.#take(request, atMs);
    const wanted = new Map(expected.map((message) => [this.id(message.id), message]));
    for (const message of taken) this.#mayTake(message, request, atMs);
    const bounded =
      taken.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0) * 2 >
      (request.bytesMax ?? Number.POSITIVE_INFINITY);
    if (taken.length > expected.length && !bounded)
      throw new Difference(`a claim brought ${taken.length}, not ${expected.length}`);
    this.#keep(taken, wanted);
    for (let tries = 0; wanted.size > 0 && tries < TRIES; tries++) {
      const plain = [...wanted].filter(([, { orderingKey }]) => orderingKey === null).map(([id]) => id);
      const { owner, leaseMs } = request;
      const again = { owner, leaseMs, ...this.at(atMs) };
      if (plain.length > 0)
        this.#keep(await this.store.claim({ ...again, lanes: [], ids: plain, due: request.ids === undefined }), wanted);
      if (wanted.size === 0) break;
      const lanes = request.lanes.map((lane) => ({ ...lane, limit: 1_000 }));
      this.#keep(await this.#take({ ...request, lanes, bytesMax: undefined }, atMs), wanted);
    }
    await this.#release(atMs);
    const [hidden] = wanted.values();
    if (hidden) throw new Difference(`I11: ${hidden.topic} ${hidden.id} (${hidden.orderingKey}) is due, and no claim brings it`);
  }

  async #take(request: ClaimRequest, atMs: number): Promise<ClaimedMessage[]> {
    const at = this.at(atMs);
    if (request.ids) return this.store.claim({ ...request, lanes: [], ids: request.ids.map((id) => this.id(id)), ...at });
    const names = new Map((await this.store.lanes(at)).map((lane) => [identityOf(lane), lane.lane]));
    const lanes = request.lanes.flatMap(({ lane, ...rest }) => {
      const name = names.get(lane);
      return name === undefined ? [] : [{ ...rest, lane: name }];
    });
    return lanes.length === 0 ? [] : this.store.claim({ ...request, lanes, ...at });
  }

  #mayTake(message: ClaimedMessage, { ids }: ClaimRequest, atMs: number): void {
    const entry = this.#ledger.entries.get(this.back(message.id));
    if (!entry) throw new Difference(`I2: ${message.id} was claimed and nobody accepted it`);
    if (entry.status !== "pending") throw new Difference(`I3: ${message.id} was claimed and is ${entry.status}`);
    if (!ids && !this.#ledger.isClaimable(entry, atMs)) throw new Difference(`order: ${message.id} was claimed out of its turn`);
  }

  /** What is wanted stays claimed and is compared; the rest goes back later, or the next try would bring the same. */
  #keep(taken: readonly ClaimedMessage[], wanted: Map<string, ClaimedMessage>): void {
    for (const message of taken) {
      const expected = wanted.get(message.id);
      if (!expected) {
        this.#unwanted.push(released(message));
        continue;
      }
      if (factsOf(message) !== factsOf(expected))
        throw new Difference(`claimed as ${factsOf(message)}, not as ${factsOf(expected)}`);
      this.#claims.set(nameOf(expected.claim, expected.id), message.claim);
      wanted.delete(message.id);
    }
  }

  async #release(atMs: number): Promise<void> {
    const back = this.#unwanted.splice(0);
    if (back.length === 0) return;
    const results = await this.store.settle(back, this.at(atMs));
    if (results.some((result) => result !== "settled")) throw new Difference("I4: what was just claimed cannot be released");
  }

  async settle(settles: readonly Settle[], atMs: number): Promise<string[]> {
    const mapped = settles.map((one) => ({ ...one, id: this.id(one.id), claim: this.#claimOf(one.claim, one.id) }));
    return this.store.settle(mapped, this.at(atMs));
  }

  /** A lease of the memory store may be several of this one: all that have something open must be extended, or none. */
  async extend(claims: readonly Claim[], leaseMs: number, expected: readonly string[], atMs: number): Promise<void> {
    for (const [i, claim] of claims.entries()) {
      const lease = this.#ledger.leases.get(claim.lease);
      const held = new Map([...(lease?.open ?? [])].map((id) => this.#claimOf(claim, id)).map((one) => [one.lease, one]));
      if (held.size === 0) continue;
      const answers = await this.store.extend([...held.values()], leaseMs, this.at(atMs));
      if (answers.some((answer) => answer !== expected[i]))
        throw new Difference(`I4: extend was answered ${answers.join()}, not ${expected[i]}`);
    }
  }

  async reclaim(request: { owner: string; leaseMs: number }, expected: readonly ClaimedMessage[], atMs: number): Promise<void> {
    const taken = await this.store.reclaim({ ...request, limit: 10_000, ...this.at(atMs) });
    const found = new Map(taken.map((message) => [this.back(message.id), message]));
    for (const message of expected) {
      const other = found.get(message.id);
      if (!other) throw new Difference(`I6: ${message.id} was lost, and reclaim does not bring it`);
      if (factsOf(other) !== factsOf(message)) throw new Difference(`reclaimed as ${factsOf(other)}, not as ${factsOf(message)}`);
      this.#claims.set(nameOf(message.claim, message.id), other.claim);
      found.delete(message.id);
    }
    if (found.size > 0) throw new Difference(`I3: ${[...found.keys()].join()} was taken over before its time`);
  }

  /** A claim that this store never gave: it must be refused all the same. */
  #claimOf(claim: Claim, id: string): Claim {
    return this.#claims.get(nameOf(claim, id)) ?? { lease: "1", token: "00000000-0000-4000-8000-000000000000" };
  }
}

const nameOf = ({ lease, token }: Claim, id: string): string => `${lease}/${token}/${id}`;
