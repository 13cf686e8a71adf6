/**
 * What the settlement tests share: a clock that can be moved, a log that is kept, a client on a real billing service.
 */

import { createLog, type Log } from "../../src/observe/log.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { createSettlementClient, type SettlementClient } from "../../src/presets/settlement/client.ts";
import type { SettlementOptions } from "../../src/presets/settlement/options.ts";
import type { FinalizeRequest } from "../../src/presets/settlement/request.ts";
import { createMemoryDLQStore } from "../../src/store/redis/dlq-port/port.ts";
import { type Billing, testSigner } from "./billing.ts";

export interface MovableClock extends Clock {
  move(ms: number): void;
}

/** Real timers, a clock that can be moved. */
export function movableClock(): MovableClock {
  let aheadMs = 0;
  return {
    wallMs: () => systemClock.wallMs() + aheadMs,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    after: (ms, run, background) => systemClock.after(ms, run, background),
    move(ms) {
      aheadMs += ms;
    },
  };
}

export interface Line {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

export interface KeptLog {
  readonly log: Log;
  readonly lines: Line[];
  /** Lines whose text contains this. */
  of(text: string): Line[];
}

export function keptLog(): KeptLog {
  const lines: Line[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Line);
  return {
    log: createLog({ clock: systemClock, format: "json", level: "debug", write }),
    lines,
    of: (text) => lines.filter(({ message }) => message.includes(text)),
  };
}

export interface Scene extends AsyncDisposable {
  readonly client: SettlementClient;
  readonly clock: MovableClock;
  readonly kept: KeptLog;
  readonly store: ReturnType<typeof createMemoryDLQStore>;
}

/** A client on the port in memory, with a clock of its own. */
export function sceneOf(billing: Pick<Billing, "url">, options: Partial<SettlementOptions> = {}): Scene {
  const clock = movableClock();
  const kept = keptLog();
  const store = createMemoryDLQStore({ clock });
  const given = { billingUrl: billing.url, s2sSigner: testSigner(), dlqStore: store, clock, log: kept.log };
  const client = createSettlementClient({ ...given, ...options });
  return { client, clock, kept, store, [Symbol.asyncDispose]: () => client.close() };
}

let made = 0;
export const request = (fields: Partial<FinalizeRequest> = {}): FinalizeRequest => ({
  reservation_id: `res-${++made}`,
  tenant_id: "tenant-1",
  actual_cost_micro: "1500000",
  trace_id: "trace-1",
  ...fields,
});

/** Everything that waits is due after this, whatever the jitter. */
export const TEN_MINUTES = 10 * 60_000 + 1;
