/**
 * From a topic's stored sink configuration to a running sink. Function sinks are not made here: they live in the code that
 * declares them.
 */
import { MakegoodError } from "../message/errors.ts";
import type { SinkConfig } from "../message/topic.ts";
import { kindOf, neverWorks } from "./check-sink.ts";
import type { Sink } from "./sink.ts";
import { faultText, type SinkDeps } from "./sink-kind.ts";

/**
 * Throws `sink_refused` for a configuration that could never work. An address that the guard refuses is not one of
 * them: the sink is made, sends nothing and answers `unserved`, because another process may have another guard.
 */
export function createSink(config: SinkConfig, deps: SinkDeps): Sink {
  const create = kindOf(config.kind)?.create;
  if (create === null) {
    throw new MakegoodError("sink_refused", `a ${config.kind} sink is given in code, it cannot be made from a configuration`);
  }
  const reasons = neverWorks(config, "outside").map(faultText);
  if (create === undefined || reasons.length > 0) {
    throw new MakegoodError("sink_refused", reasons.join("; "), { kind: config.kind, reasons });
  }
  return create(config, deps);
}
