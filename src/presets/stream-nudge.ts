/**
 * A dead letter is published when it appears, not at the outlet's next look: listens for deaths of some topics for as long as the
 * doors of their stream are open. A hint only; what it misses the next pass finds.
 */
import type { Events } from "../observe/events.ts";
import type { StreamDoors } from "../store/redis/streams/doors.ts";

export function nudgeOnDeath(doors: StreamDoors, events: Events, topics: readonly string[]): StreamDoors {
  const silence = events.on((event) => {
    if (event.type === "attempt" && event.status === "dead" && topics.includes(event.topic)) doors.nudge();
  });
  const stop: StreamDoors["stop"] = (options) => {
    silence();
    return doors.stop(options);
  };
  return { ...doors, stop, [Symbol.asyncDispose]: () => stop() };
}
