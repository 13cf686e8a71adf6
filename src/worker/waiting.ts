/**
 * What was claimed and not started, in the order it came. Attempts whose topic or tenant already runs as many as it may let
 * others pass and come first again when one of those ends, so that they hold up nobody else.
 */
import type { Attempt } from "./attempt.ts";
import { Fifo } from "./fifo.ts";
import type { TenantState, TopicState } from "./topic-state.ts";

export class Waiting {
  readonly #line = new Fifo<Attempt>();
  /** Was blocked and may try again. */
  readonly #back = new Fifo<Attempt>();
  readonly #blocked = new Map<TopicState | TenantState, Fifo<Attempt>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(attempt: Attempt): void {
    this.#length++;
    this.#line.push(attempt);
  }

  /** The next one that may start. */
  next(): Attempt | undefined {
    for (;;) {
      const attempt = this.#back.shift() ?? this.#line.shift();
      if (!attempt) return undefined;
      const { topic, tenant } = attempt.lane;
      if (topic.running >= topic.runningMax) this.#block(attempt, topic);
      else if (tenant.running >= topic.tenantRunningMax) this.#block(attempt, tenant);
      else {
        this.#length--;
        return attempt;
      }
    }
  }

  /** One of this topic and tenant has ended. */
  ended(topic: TopicState, tenant: TenantState): void {
    if (this.#blocked.size === 0) return;
    this.#comeBack(tenant);
    this.#comeBack(topic);
  }

  /** When the oldest of them came; Infinity when none waits. */
  oldestMs(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const line of [this.#line, this.#back, ...this.#blocked.values()]) {
      oldest = Math.min(oldest, line.first()?.lease.receivedMs ?? oldest);
    }
    return oldest;
  }

  /** Takes out what `chosen` picks; `index` counts from the one that would start first. */
  takeWhere(chosen: (attempt: Attempt, index: number) => boolean): Attempt[] {
    if (this.#length === 0) return [];
    let index = 0;
    const pick = (attempt: Attempt): boolean => chosen(attempt, index++);
    const taken = [this.#back, ...this.#blocked.values(), this.#line].flatMap((line) => line.takeWhere(pick));
    this.#length -= taken.length;
    return taken;
  }

  #block(attempt: Attempt, full: TopicState | TenantState): void {
    const line = this.#blocked.get(full);
    if (line) {
      line.push(attempt);
      return;
    }
    const fresh = new Fifo<Attempt>();
    fresh.push(attempt);
    this.#blocked.set(full, fresh);
  }

  #comeBack(freed: TopicState | TenantState): void {
    const line = this.#blocked.get(freed);
    const attempt = line?.shift();
    if (attempt) this.#back.push(attempt);
    if (line?.length === 0) this.#blocked.delete(freed);
  }
}
