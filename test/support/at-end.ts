/**
 * What the files of a worker's run have started and must not outlive them. Files share a process, and a module that they share is loaded once
 * in it, so it cannot use a hook of its own: it says here what is to be ended, and each file ends it (each-file.ts).
 */
const endings = new Set<() => Promise<void> | void>();

/** Called once by a module; `end` is called after each file and ends what there is then. */
export function atEnd(end: () => Promise<void> | void): void {
  endings.add(end);
}

export async function endAll(): Promise<void> {
  for (const end of endings) await end();
}
