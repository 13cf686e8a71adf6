/**
 * What was claimed and not started, in the order it came. Attempts whose topic or tenant already runs as many as it may step
 * aside and come first again when one of those ends, so that they hold up nobody else.
 */
import type { Attempt } from "./attempt.ts";
import { Fifo } from "./fifo.ts";
import type { TenantState, TopicState } from "./topic-state.ts";

export class Waiting {
  readonly #line = new Fifo<Attempt>();
  /** Had stepped aside and may try again. */
  readonly #back = new Fifo<Attempt>();
  readonly #aside = new Map<TopicState | TenantState, Fifo<Attempt>>();
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
      if (topic.running >= topic.runningMax) this.#stepAside(attempt, topic);
      else if (tenant.running >= topic.tenantRunningMax) this.#stepAside(attempt, tenant);
      else {
        this.#length--;
        return attempt;
      }
    }
  }

  /** One of this topic and tenant has ended. */
  ended(topic: TopicState, tenant: TenantState): void {
    if (this.#aside.size === 0) return;
    this.#comeBack(tenant);
    this.#comeBack(topic);
  }

  /** When the oldest of them came; Infinity when none waits. */
  oldestMs(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const line of [this.#line, this.#back, ...this.#aside.values()]) {
      oldest = Math.min(oldest, line.first()?.lease.receivedMs ?? oldest);
    }
    return oldest;
  }

  /** Takes out what `chosen` picks; `index` counts from the one that would start first. */
  takeWhere(chosen: (attempt: Attempt, index: number) => boolean): Attempt[] {
    if (this.#length === 0) return [];
    let index = 0;
    const pick = (attempt: Attempt): boolean => chosen(attempt, index++);
    const taken = [this.#back, ...this.#aside.values(), this.#line].flatMap((line) => line.takeWhere(pick));
    this.#length -= taken.length;
    return taken;
  }

  #stepAside(attempt: Attempt, full: TopicState | TenantState): void {
    const line = this.#aside.get(full);
    if (line) {
      line.push(attempt);
      return;
    }
    const fresh = new Fifo<Attempt>();
    fresh.push(attempt);
    this.#aside.set(full, fresh);
  }

  #comeBack(freed: TopicState | TenantState): void {
    const line = this.#aside.get(freed);
    const attempt = line?.shift();
    if (attempt) this.#back.push(attempt);
    if (line?.length === 0) this.#aside.delete(freed);
  }
}
