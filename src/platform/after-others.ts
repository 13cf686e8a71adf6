/**
 * A later round of the event loop, for work that is to begin when what was written in this one is on its way: clients write what they
 * were given in a round all at once, at its end.
 */

/** Two steps, because the first may come before the client's own. */
export function afterOthers(run: () => void): void {
  setImmediate(() => setImmediate(run));
}
