/**
 * What each route says that a call does, so that a program can be let in by it.
 */
import { describe, expect, it } from "vitest";
import { ADDRESSES } from "../../../src/contract/addresses.ts";
import { openApiDocument } from "../../../src/contract/openapi.ts";
import type { Route } from "../../../src/contract/route.ts";
import { ROUTES, routeIds } from "../../../src/contract/table.ts";

const routes = routeIds.map((id) => [id, ADDRESSES[id][0], ROUTES[id] as Route] as const);

const byName = (a: string, b: string): number => (a < b ? -1 : 1);

describe("the effect of a route", () => {
  it.each(routes)("%s: %s fits its method and who may use it", (id, method, { effect, permission }) => {
    if (method === "GET") expect(effect).toBe("reads");
    if (method === "DELETE") expect(effect).toBe("destroys");
    expect(effect === "reads").toBe(permission === "open" || permission === "read");
    // Who only brings messages in ends none.
    if (permission === "accept") expect(effect).toBe("changes");
    const path = ADDRESSES[id][1];
    const operation = (openApiDocument("1.2.3").paths as Record<string, Record<string, Record<string, unknown>>>)[path];
    expect(operation?.[method.toLowerCase()]?.["x-makegood-effect"]).toBe(effect);
  });

  it("destroys are those that end or delete what no other call brings back", () => {
    const destroying = routes.filter(([, , { effect }]) => effect === "destroys").map(([id]) => id);
    expect(destroying.toSorted(byName)).toEqual([
      "cancelMessage",
      "deleteCandidate",
      "deleteCause",
      "deleteGroupRule",
      "deleteRule",
      "deleteTopic",
      "discardMessage",
      "eraseAudit",
      "executeCandidate",
      "resolveMessage",
      "startRedrive",
    ]);
  });

  it("what is asked by POST and changes nothing reads", () => {
    const asking = routes.filter(([, method, { effect }]) => method !== "GET" && effect === "reads").map(([id]) => id);
    expect(asking.toSorted(byName)).toEqual(["evaluateFailure", "findIds", "suggestFailure", "whatIf"]);
  });
});
