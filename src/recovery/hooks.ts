/** Functions of a program that are called when the engine does something. One that throws or takes too long leaves an event. */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Candidate } from "./candidates/candidate.ts";
import type { Group } from "./groups/group.ts";
import type { Evaluation } from "./rules/evaluate.ts";

interface Moment {
  readonly candidate: Candidate;
  readonly group: Group;
}

export interface RecoveryHooks {
  on_evaluation_start(at: Moment): unknown;
  on_suggestion_generated(at: Moment & { readonly evaluation: Evaluation }): unknown;
  on_action_selected(at: Moment & { readonly action: string; readonly confidence: number }): unknown;
  on_execution_start(at: Moment & { readonly executionId: string }): unknown;
  on_execution_complete(at: Moment & { readonly result: string }): unknown;
}

export type HookName = keyof RecoveryHooks;

export interface HookOptions {
  /** Default 1,000. */
  readonly timeoutMs?: number | undefined;
}

export type Hooks = ReturnType<typeof createHooks>;

const TIMEOUT_MS = 1_000;

type Hook = (at: never) => unknown;

export function createHooks({ clock, events }: { readonly clock: Clock; readonly events: Events }) {
  const hooks = new Map<HookName, Set<{ readonly hook: Hook; readonly timeoutMs: number }>>();

  const failed = (name: HookName, error: string): void =>
    events.emit({ type: "lifecycle", what: "recovery_hook_failed", detail: { hook: name, error } });

  async function run(name: HookName, hook: Hook, timeoutMs: number, at: unknown): Promise<void> {
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
    on<N extends HookName>(name: N, hook: RecoveryHooks[N], { timeoutMs = TIMEOUT_MS }: HookOptions = {}): () => void {
      const set = hooks.get(name) ?? new Set();
      hooks.set(name, set);
      const entry = { hook: hook as Hook, timeoutMs };
      set.add(entry);
      return () => void set.delete(entry);
    },
    /** Never throws; waits for each hook up to its limit. */
    async tell<N extends HookName>(name: N, at: Parameters<RecoveryHooks[N]>[0]): Promise<void> {
      for (const { hook, timeoutMs } of [...(hooks.get(name) ?? [])]) await run(name, hook, timeoutMs, at);
    },
  };
}
