/**
 * Hooks: functions of a program that are called when the engine does something. A hook that throws, or that takes longer than its
 * limit, only leaves an event; hooks of one moment run one after the other, each on its own.
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Candidate } from "./candidates/candidate.ts";
import type { Group } from "./groups/group.ts";
import type { Evaluation } from "./rules/evaluate.ts";

export interface RecoveryHooks {
  on_evaluation_start(at: { readonly candidate: Candidate; readonly group: Group }): unknown;
  on_suggestion_generated(at: { readonly candidate: Candidate; readonly group: Group; readonly evaluation: Evaluation }): unknown;
  on_action_selected(at: {
    readonly candidate: Candidate;
    readonly group: Group;
    readonly action: string;
    readonly confidence: number;
  }): unknown;
  on_execution_start(at: { readonly candidate: Candidate; readonly group: Group; readonly executionId: string }): unknown;
  on_execution_complete(at: { readonly candidate: Candidate; readonly group: Group; readonly result: string }): unknown;
}

export type HookName = keyof RecoveryHooks;

export interface HookOptions {
  /** Default 1,000. */
  readonly timeoutMs?: number | undefined;
}

export interface Hooks {
  on<N extends HookName>(name: N, hook: RecoveryHooks[N], options?: HookOptions): () => void;
  /** Never throws; waits for each hook up to its limit. */
  tell<N extends HookName>(name: N, at: Parameters<RecoveryHooks[N]>[0]): Promise<void>;
}

const TIMEOUT_MS = 1_000;

export function createHooks({ clock, events }: { readonly clock: Clock; readonly events: Events }): Hooks {
  const hooks = new Map<HookName, Set<{ readonly hook: (at: never) => unknown; readonly timeoutMs: number }>>();

  const failed = (name: HookName, error: string): void =>
    events.emit({ type: "lifecycle", what: "recovery_hook_failed", detail: { hook: name, error } });

  async function run(name: HookName, hook: (at: never) => unknown, timeoutMs: number, at: unknown): Promise<void> {
    let timer: ReturnType<Clock["after"]> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = clock.after(timeoutMs, () => resolve("late"));
    });
    try {
      const result = await Promise.race([Promise.resolve(hook(at as never)), late]);
      if (result === "late") failed(name, `it took longer than ${timeoutMs} ms and is no longer waited for`);
    } catch (thrown) {
      failed(name, errorText(thrown));
    } finally {
      timer?.cancel();
    }
  }

  return {
    on(name, hook, { timeoutMs = TIMEOUT_MS } = {}) {
      const set = hooks.get(name) ?? new Set();
      hooks.set(name, set);
      const entry = { hook: hook as (at: never) => unknown, timeoutMs };
      set.add(entry);
      return () => void set.delete(entry);
    },
    async tell(name, at) {
      for (const { hook, timeoutMs } of [...(hooks.get(name) ?? [])]) await run(name, hook, timeoutMs, at);
    },
  };
}
