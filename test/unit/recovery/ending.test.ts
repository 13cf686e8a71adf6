/** What became of a message, as a table: the one meaning that every engine of the redrive seam agrees with. */
import { describe, expect, it } from "vitest";
import type { Resolution, Status } from "../../../src/message/message.ts";
import { endingOf, type Seen } from "../../../src/recovery/redrive/look.ts";
import type { RedriveMode } from "../../../src/recovery/redrive/redrive.ts";

const seen = (status: Status, resolution: Resolution | null = null, generation = 3): Seen => ({ status, resolution, generation });

/** The ending of an item that was frozen in generation 2; `open`: not known yet. */
function ending(mode: RedriveMode, what: Seen | null, quiet = mode !== "watch", taken = false): string {
  const known = endingOf(mode, 2, what, quiet, taken);
  return known ? `${known.state}: ${known.reason}${known.learned ? "" : ", not learned"}` : "open";
}

describe("what became of it", () => {
  it("DR-30: only a delivery, or a person who settled it, heals; a death of a later generation fails", () => {
    for (const mode of ["replay", "watch"] as const) {
      expect(ending(mode, seen("delivered"))).toBe("healed: delivered");
      expect(ending(mode, seen("dead", "resolved"))).toBe("healed: resolved");
      expect(ending(mode, seen("dead", "discarded"))).toBe("failed: discarded");
      expect(ending(mode, seen("dead", "open"))).toBe("failed: dead_again");
      expect(ending(mode, seen("pending"))).toBe("open");
      expect(ending(mode, seen("processing"))).toBe("open");
    }
  });

  it("a person who replays again tells that the redrive's own generation did not deliver; a watch goes on", () => {
    expect(ending("replay", seen("delivered", null, 4))).toBe("failed: replayed_again");
    expect(ending("watch", seen("delivered", null, 4))).toBe("healed: delivered");
    expect(ending("watch", seen("dead", "open", 2))).toBe("open");
  });

  it("a carrier counts as it stands, whatever its own generation", () => {
    for (const mode of ["copy", "new_key"] as const) {
      expect(ending(mode, seen("delivered", null, 0))).toBe("healed: delivered");
      expect(ending(mode, seen("delivered", null, 9))).toBe("healed: delivered");
      expect(ending(mode, seen("dead", "open", 0))).toBe("failed: dead_again");
      expect(ending(mode, seen("pending", null, 0))).toBe("open");
    }
  });

  it("a resolved one must stay resolved for the quiet time; otherwise it was reverted", () => {
    expect(ending("resolve", seen("dead", "resolved", 2), false)).toBe("open");
    expect(ending("resolve", seen("dead", "resolved", 2), true)).toBe("healed: resolved");
    for (const reverted of [seen("pending"), seen("delivered"), seen("dead", "open"), seen("dead", "discarded", 2)]) {
      expect(ending("resolve", reverted)).toBe("failed: reverted");
    }
  });

  it("what is watched belongs to the redrive that took it up, and is let go after the quiet time", () => {
    expect(ending("watch", seen("delivered"), false, true)).toBe("skipped: taken_over, not learned");
    expect(ending("replay", seen("delivered"), false, true)).toBe("healed: delivered");
    expect(ending("watch", seen("dead", "open", 2), true)).toBe("skipped: not_known, not learned");
    expect(ending("watch", seen("pending"), true)).toBe("skipped: not_known, not learned");
    expect(ending("watch", seen("delivered"), true)).toBe("healed: delivered");
  });

  it("what is gone was settled long ago, and teaches nothing", () => {
    for (const mode of ["replay", "copy", "new_key", "resolve", "watch"] as const) {
      expect(ending(mode, null)).toBe("healed: pruned, not learned");
    }
  });
});
