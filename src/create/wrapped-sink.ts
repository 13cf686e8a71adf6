/**
 * Sinks as the workers get them where that is not quite what was made: without their end, or as something that has messages only now
 * and then.
 */
import type { Sink } from "../sink/sink.ts";

/** A sink that was handed in outlives changes of its topic: it is closed once, at the end. */
export function withoutClose(sink: Sink): Sink {
  const { kind, onDemand = false } = sink;
  return { kind, onDemand, deliver: (delivery, context) => sink.deliver(delivery, context), ...probeOf(sink) };
}

/** No room is kept free for it while it has nothing. */
export function onDemand(sink: Sink): Sink {
  const close = sink.close && { close: () => sink.close?.() ?? Promise.resolve() };
  return { ...withoutClose(sink), ...close, onDemand: true };
}

function probeOf(sink: Sink): Pick<Sink, "probe"> {
  return sink.probe ? { probe: sink.probe.bind(sink) } : {};
}
