/**
 * Calls a hook of somebody else's: a log, a listener, an alarm. What it throws, at once or in a promise, is its own problem (N8): it changes
 * nothing here, and ends no process.
 */
export function tell(hook: () => unknown): void {
  try {
    const answer = hook();
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // There is nobody left to tell.
  }
}
