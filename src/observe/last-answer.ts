/**
 * The last answer of something that may hang: asks at most once at a time and never makes a caller wait longer than it
 * said it would. What comes back says how old it is. A slow answer is no failure; one that does not come for five seconds is.
 */
import { errorText } from "../message/errors.ts";
import { type Clock, sleep } from "../platform/clock.ts";

export interface Answer<T> {
  /** Undefined until the first good answer. */
  readonly value: T | undefined;
  /** Why the last question failed, or that it has had no answer for long; null when it was answered, or is not late yet. */
  readonly error: string | null;
  /** How long ago the last good answer came. */
  readonly ageMs: number | null;
  readonly tookMs: number | null;
}

export interface LastAnswer<T> {
  /** An answer at most `keptMs` old if one comes in `waitMs`; else the last one, marked with what is wrong. */
  read(waitMs: number): Promise<Answer<T>>;
}

const SILENT_MS = 5_000;
/** A costly answer is kept this many times as long as it took. */
const KEPT_PER_COST = 20;
const KEPT_MS_MAX = 60_000;

/**
 * `costly`: the longer an answer takes, the longer it is kept, and a caller does not wait for one that takes longer than
 * `waitMs`.
 */
export function createLastAnswer<T>(clock: Clock, keptMs: number, ask: () => Promise<T>, costly = false): LastAnswer<T> {
  let value: T | undefined;
  let error: string | null = null;
  let answeredAtMs: number | null = null;
  let tookMs: number | null = null;
  let underWay: { readonly since: number; readonly done: Promise<void> } | null = null;

  const start = (): { since: number; done: Promise<void> } => {
    const since = clock.monotonicMs();
    const finish = (failed: string | null): void => {
      error = failed;
      tookMs = Math.round(clock.monotonicMs() - since);
      underWay = null;
    };
    const done = ask().then(
      (answer) => {
        value = answer;
        answeredAtMs = clock.monotonicMs();
        finish(null);
      },
      (thrown) => finish(errorText(thrown)),
    );
    return { since, done };
  };

  return {
    async read(waitMs) {
      const costMs = costly ? (tookMs ?? 0) : 0;
      const kept = costly ? Math.max(keptMs, Math.min(KEPT_MS_MAX, KEPT_PER_COST * costMs)) : keptMs;
      const fresh = error === null && answeredAtMs !== null && clock.monotonicMs() - answeredAtMs <= kept;
      if (!fresh) {
        underWay ??= start();
        // A caller that comes while a question is under way waits only for the rest of its time.
        const hopeless = value !== undefined && error === null && costMs > waitMs;
        const leftMs = hopeless ? 0 : waitMs - (clock.monotonicMs() - underWay.since);
        const late = new AbortController();
        if (leftMs > 0) await Promise.race([underWay.done, sleep(clock, leftMs, late.signal)]);
        late.abort();
      }
      const now = clock.monotonicMs();
      const silentMs = underWay === null ? 0 : Math.round(now - (underWay as { since: number }).since);
      const silence = silentMs >= SILENT_MS ? `no answer for ${silentMs} ms` : null;
      return { value, error: silence ?? error, ageMs: answeredAtMs === null ? null : Math.round(now - answeredAtMs), tookMs };
    },
  };
}
