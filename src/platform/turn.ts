/**
 * A later turn of the event loop, for work that is to begin when what this turn has written is on its way: clients write what they
 * were given in a turn all at once, at its end.
 */

/** Two steps, because the first may come before the client's own. */
export function nextTurn(run: () => void): void {
  setImmediate(() => setImmediate(run));
}
