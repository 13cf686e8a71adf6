/**
 * What the streams of the presets have in common: entries become messages of a Makegood, and a dead letter is published when it appears,
 * not at the outlet's next look. That is a hint only; what it misses the next pass finds.
 */
import type { Makegood } from "../create.ts";
import { type StreamDoors, type StreamDoorsOptions, startStreamDoors } from "../store/redis/streams/doors.ts";

type Shared = "redis" | "consumerName" | "onNotice" | "clock" | "random";

export interface PresetStreamOptions extends Pick<StreamDoorsOptions, Shared> {
  /** It must have the topics of the stream, and a process must work on them. */
  readonly mg: Pick<Makegood, "store" | "events" | "enqueueText">;
}

type Seeds = Omit<StreamDoorsOptions, Shared | "store" | "accept" | "seedDeadStream">;

/** `seeds`: as the seed has it, where the options say nothing else. */
export function startPresetStream(
  { mg, redis, ...options }: PresetStreamOptions,
  { deadStream: seedDeadStream, ...seeds }: Seeds,
): StreamDoors {
  const given: Partial<Seeds> = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const accept: StreamDoorsOptions["accept"] = (messages, signal) => mg.enqueueText(messages, { signal });
  const doors = startStreamDoors({ ...seeds, seedDeadStream, ...given, redis, store: mg.store, accept });
  const silence = mg.events.on((event) => {
    if (event.type === "attempt" && event.status === "dead" && seeds.topics.includes(event.topic)) doors.nudge();
  });
  const stop: StreamDoors["stop"] = (how) => {
    silence();
    return doors.stop(how);
  };
  return { ...doors, stop, [Symbol.asyncDispose]: () => stop() };
}
