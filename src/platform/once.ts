/**
 * Work that is done once: callers at the same time share one run, and one that failed is run again by the next caller.
 */
export function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work().catch((error) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}
