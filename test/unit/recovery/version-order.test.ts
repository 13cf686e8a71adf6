/** Which version came first, and whether a failure of it brings back what was resolved in another. */
import { describe, expect, it } from "vitest";
import { bringsBack, versionOrder } from "../../../src/recovery/groups/version-order.ts";

describe("the order of versions", () => {
  it.each([
    ["1.4.2", "1.4.10"],
    ["v1.4.2", "1.5.0"],
    ["1.4.2-rc.1", "1.4.2"],
    ["1.4.2-alpha", "1.4.2-alpha.1"],
    ["1.4.2-alpha.1", "1.4.2-alpha.beta"],
    ["1.4.2-beta.2", "1.4.2-beta.11"],
    ["2024.11", "2024.11.3"],
    ["7", "10"],
    ["1.9", "1.10"],
  ])("%s came before %s", (a, b) => {
    expect([Math.sign(versionOrder(a, b) ?? 0), Math.sign(versionOrder(b, a) ?? 0)]).toEqual([-1, 1]);
    expect([bringsBack(a, b), bringsBack(b, a), bringsBack(a, a)]).toEqual([false, true, true]);
  });

  it("builds of one version, and missing zeros, are the same; other texts are only equal or not", () => {
    expect([versionOrder("1.4.2+a", "1.4.2+b"), versionOrder("1.4", "1.4.0")]).toEqual([0, 0]);
    expect([versionOrder("9f8e7d", "9f8e7d"), versionOrder("9f8e7d", "0a1b2c"), versionOrder("1.4.2", "main")]).toEqual([
      0,
      null,
      null,
    ]);
  });

  it("what cannot be told brings it back", () => {
    expect([bringsBack(null, "1.4.2"), bringsBack("1.0.0", null), bringsBack("main", "1.4.2")]).toEqual([true, true, true]);
  });
});
