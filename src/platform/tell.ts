/**
 * Calls a hook of the embedding program: a log, a listener, an alarm. What it throws, at once or in a promise, changes nothing
 * here and ends no process.
 */
export function tell(hook: () => unknown): void {
  try {
    const answer = hook();
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // There is nobody left to tell.
  }
}
