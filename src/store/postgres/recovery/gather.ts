/**
 * Gathers calls that come while earlier ones are on their way into one write: a hundred callers of one group would otherwise wait for
 * each other's commits one by one, and for a connection before that. Each gets its own answers; what fails in company is tried alone.
 */
interface Call<T, R> {
  readonly items: readonly T[];
  readonly resolve: (results: R[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls of one `kind` may be written together. */
export function createGather<T, R>(
  write: (items: readonly T[]) => Promise<R[]>,
  { batchMax, flightsMax }: { readonly batchMax: number; readonly flightsMax: number },
): (kind: string, items: readonly T[]) => Promise<R[]> {
  const waiting = new Map<string, Call<T, R>[]>();
  let flying = 0;

  function take(): Call<T, R>[] {
    const [[kind, calls] = ["", []]] = waiting;
    let size = 0;
    const fits = calls.findIndex((call) => {
      size += call.items.length;
      return size > batchMax;
    });
    const batch = calls.splice(0, fits < 0 ? calls.length : Math.max(1, fits));
    // Kinds take turns: what is left goes to the end.
    waiting.delete(kind);
    if (calls.length > 0) waiting.set(kind, calls);
    return batch;
  }

  async function flush(): Promise<void> {
    const batch = take();
    try {
      const results = await write(batch.flatMap((call) => call.items));
      let from = 0;
      for (const call of batch) {
        call.resolve(results.slice(from, from + call.items.length));
        from += call.items.length;
      }
    } catch (error) {
      if (batch.length === 1 || (error as { retryable?: boolean } | null)?.retryable)
        for (const call of batch) call.reject(error);
      else for (const call of batch) await write(call.items).then(call.resolve, call.reject);
    }
  }

  function pump(): void {
    while (flying < flightsMax && waiting.size > 0) {
      flying++;
      void flush().finally(() => {
        flying--;
        pump();
      });
    }
  }

  return (kind, items) =>
    new Promise((resolve, reject) => {
      const calls = waiting.get(kind) ?? [];
      waiting.set(kind, calls);
      calls.push({ items, resolve, reject });
      // After this turn: whoever calls in the same turn comes along.
      queueMicrotask(pump);
    });
}
