/**
 * What is known of a store without asking it: a loop in the background asks whether it would accept an enqueue, each minute also what
 * accepted messages survive, and everybody else reads the last answer and its age. Only a failed question changes the state, never
 * a slow one; one that has no answer after five seconds has failed.
 */
import { errorText, isMakegoodError } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Finding } from "../observe/finding.ts";
import { type Clock, inBackground, within } from "../platform/clock.ts";
import { startLoop } from "../platform/loop.ts";
import type { Checked, Store, StoreTraits } from "../store/store.ts";

export interface StoreWatchOptions {
  readonly store: Store;
  /** False: it has not been opened yet, and so takes nothing. */
  readonly opened: () => boolean;
  /** What a store below the primary lacks makes things worse, and no more than that. */
  readonly secondary?: boolean | undefined;
  readonly clock: Clock;
  readonly events: Events;
  /** Absent: five seconds. */
  readonly noAnswerMs?: number | undefined;
  /** Absent: a minute. */
  readonly durabilityMs?: number | undefined;
}

export interface StoreState {
  /** Why an enqueue would be refused; null: it would be accepted. */
  readonly error: string | null;
  /** Wall clock: since when that is so. */
  readonly sinceMs: number;
  /** Wall clock of the last answer, good or bad. */
  readonly checkedAtMs: number;
  readonly ageMs: number;
  /** How long the last answer took; null: nobody has asked yet. */
  readonly tookMs: number | null;
}

export interface StoreWatch {
  state(): StoreState;
  findings(): Finding[];
  /** The state from an answer at most `keptMs` old if that comes within `waitMs`, else the last one. */
  fresh(keptMs: number, waitMs: number): Promise<StoreState>;
  /** Asks this often from now on, instead of each minute; returns how to let go of that. */
  often(everyMs: number): () => void;
  /** An enqueue failed with this: a refusal for lack of room holds until a write goes through, anything else is looked into at once. */
  refused(error: unknown): void;
  /** An enqueue was accepted. */
  accepted(): void;
  /** A person knows that the store lost what it held: no process shows it any more. */
  acknowledge(actor: string, reason: string): Promise<void>;
  stop(): void;
}

const SELDOM_MS = 60_000;
const FIRST_MS = 1_000;
const DURABILITY_MS = 60_000;
const NO_ANSWER_MS = 5_000;
/** How long a loss is shown: longer than a night. */
const LOSS_SHOWN_MS = 24 * 3_600_000;
const ORDER: readonly StoreTraits["survives"][] = ["nothing", "process-crash", "power-loss"];

export function startStoreWatch(options: StoreWatchOptions): StoreWatch {
  const { store, clock, events, noAnswerMs = NO_ANSWER_MS, durabilityMs = DURABILITY_MS } = options;
  const { name } = store.traits;
  const intervals = new Map<symbol, number>();
  const waiting = new Set<() => void>();
  const born = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
  let error: string | null = null;
  let sinceMs = born.wallMs;
  let answeredMs = born.monotonicMs;
  let tookMs: number | null = null;
  let full: string | null = null;
  let doubted = false;
  let durabilityAtMs = born.monotonicMs;
  let lost: Checked["lost"] = null;
  /** What it survived at best, and since when it is less. */
  let survives = { best: store.traits.survives, now: store.traits.survives, sinceMs: born.wallMs };

  /** Before it is open, what it says of itself is a guess. */
  const wasOpen = options.opened();
  let told = false;

  const reason = (): string | null => error ?? full ?? (options.opened() ? null : "it has not been opened yet");
  let reported = reason();
  const noted = (): void => {
    if ((reason() === null) !== (reported === null)) sinceMs = clock.wallMs();
    reported = reason();
  };

  function follow(checked: Checked): void {
    const { survives: now, processes } = store.traits;
    const first = !told;
    told = true;
    if (first && (now === survives.now || !wasOpen)) {
      // Settings under which a power cut loses what was accepted are said at the start: no change would tell of them.
      if (processes === "many" && now !== "power-loss") {
        events.emit({ type: "durability", store: name, survives: now, before: "unknown" });
      }
      survives = { best: now, now, sinceMs: clock.wallMs() };
    } else if (now !== survives.now) {
      events.emit({ type: "durability", store: name, survives: now, before: survives.now });
      const best = ORDER.indexOf(now) > ORDER.indexOf(survives.best) ? now : survives.best;
      survives = { best, now, sinceMs: clock.wallMs() };
    }
    if (checked.lost !== null && checked.lost.atMs !== lost?.atMs) {
      events.emit({ type: "store_lost_data", store: name, what: checked.lost.what });
    }
    lost = checked.lost;
  }

  async function ask(): Promise<void> {
    const askedMs = clock.monotonicMs();
    const write = full !== null || doubted;
    const durability = askedMs - durabilityAtMs >= durabilityMs;
    doubted = false;
    try {
      const checked = await within(inBackground(clock), store.check({ durability, write }), noAnswerMs);
      if (checked === null) throw new Error(`no answer for ${noAnswerMs} ms`);
      if (durability) durabilityAtMs = askedMs;
      if (write) full = null;
      error = null;
      follow(checked);
    } catch (thrown) {
      error = errorText(thrown);
      // A question that only reads would say otherwise: what a write found out holds until a write goes through.
      doubted ||= write;
    }
    answeredMs = clock.monotonicMs();
    tookMs = Math.round(answeredMs - askedMs);
    noted();
    for (const wake of [...waiting]) wake();
  }

  const everyMs = (): number => Math.min(SELDOM_MS, ...intervals.values());
  let first = options.opened();
  const loop = startLoop({
    clock: inBackground(clock),
    step: async () => {
      // The caller has just opened it, and those who listen for what is found are not there yet.
      const soon = first;
      if (!first) await ask();
      first = false;
      return soon ? Math.min(FIRST_MS, everyMs()) : everyMs();
    },
    failed: () => everyMs(),
  });

  const state = (): StoreState => {
    noted();
    const ageMs = Math.round(clock.monotonicMs() - answeredMs);
    return { error: reason(), sinceMs, checkedAtMs: clock.wallMs() - ageMs, ageMs, tookMs };
  };

  return {
    state,
    findings: () => findingsOf(options, state(), lost, survives),
    async fresh(keptMs, waitMs) {
      if (clock.monotonicMs() - answeredMs > keptMs) {
        let wake = (): void => {};
        const answered = new Promise<void>((resolve) => {
          wake = resolve;
        });
        waiting.add(wake);
        loop.nudge();
        await within(clock, answered, waitMs);
        waiting.delete(wake);
      }
      return state();
    },
    often(ms) {
      const key = Symbol();
      intervals.set(key, ms);
      loop.nudge();
      return () => void intervals.delete(key);
    },
    refused(thrown) {
      const code = isMakegoodError(thrown) ? thrown.code : null;
      if (code === "store_full") {
        if (full === null) loop.nudge();
        full = errorText(thrown);
        noted();
      } else if (code === null || code === "store_unavailable" || code === "schema_outdated") {
        if (!doubted && error === null) loop.nudge();
        doubted = true;
      }
    },
    accepted() {
      full = null;
    },
    async acknowledge(actor, reason) {
      const what = lost?.what ?? null;
      follow(await store.check({ acknowledge: true }));
      events.emit({ type: "lifecycle", what: "store_loss_acknowledged", detail: { store: name, lost: what, actor, reason } });
    },
    // A question that hangs keeps nobody from closing.
    stop: () => void loop.stop(),
  };
}

function findingsOf(
  { store, secondary = false, clock }: StoreWatchOptions,
  { error, sinceMs }: StoreState,
  lost: Checked["lost"],
  survives: { best: string; now: string; sinceMs: number },
): Finding[] {
  const { name } = store.traits;
  const which = secondary ? `the secondary store (${name})` : `the store (${name})`;
  const found: Finding[] = [];
  const add = (what: string, reason: string, since: number, severity: Finding["severity"]): void =>
    void found.push({ what, topic: null, reason, sinceMs: since, severity });
  if (error !== null) {
    add("store_refuses", `${which} would accept nothing: ${error}`, sinceMs, secondary ? "degraded" : "unhealthy");
  }
  if (lost !== null && clock.wallMs() - lost.atMs < LOSS_SHOWN_MS) add("store_lost_data", lost.what, lost.atMs, "degraded");
  if (survives.now !== survives.best) {
    const what = `what ${which} accepts survives ${survives.now} now; it survived ${survives.best} before its settings were changed`;
    add("durability_lost", what, survives.sinceMs, "degraded");
  }
  return found;
}
