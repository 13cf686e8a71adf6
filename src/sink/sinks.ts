/**
 * From a topic's stored sink configuration to a running sink. Function sinks are not made here: they live in the code that
 * declares them.
 */
import { MakegoodError } from "../message/errors.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { AddressGuard } from "./address-guard.ts";
import { neverWorks } from "./check-sink.ts";
import { httpSink } from "./http.ts";
import { type LogLine, notifySink } from "./notify.ts";
import type { Sink } from "./sink.ts";
import { webhookSink } from "./webhook.ts";

export interface SinkDeps {
  readonly guard: AddressGuard;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: LogLine;
}

/**
 * Throws `sink_refused` for a configuration that could never work. An address that the guard refuses is not one of
 * them: the sink is made, sends nothing and answers `unserved`, because another process may have another guard.
 */
export function createSink(config: SinkConfig, deps: SinkDeps): Sink {
  const reasons = neverWorks(config);
  if (reasons.length > 0) throw new MakegoodError("sink_refused", reasons.join("; "), { kind: config.kind, reasons });
  const { url, headers, timeoutMs, trusted } = config;
  switch (config.kind) {
    case "http":
      return httpSink({ url: url as string, headers, timeoutMs, trusted, statusMap: config.statusMap }, deps);
    case "webhook":
      return webhookSink({ url: url as string, headers, timeoutMs, trusted, secrets: config.secrets ?? [] }, deps);
    case "notify":
      return notifySink({ url, headers, timeoutMs, trusted }, deps);
    case "function":
      throw new MakegoodError("sink_refused", "a function sink is given in code, it cannot be made from a configuration");
  }
}
