/**
 * What anyone may read about a store that is away: why, and never where it is.
 */
import { describe, expect, it } from "vitest";
import { withoutAddresses } from "../../../src/server/handlers/probes.ts";

describe("C9: readiness without addresses", () => {
  it.each([
    ["postgres connect ECONNREFUSED 127.0.0.1:5432", "postgres connect ECONNREFUSED its address"],
    ["postgres connect ECONNREFUSED ::1:5432", "postgres connect ECONNREFUSED its address"],
    ["postgres connect EHOSTUNREACH [fe80::1]:5432", "postgres connect EHOSTUNREACH its address"],
    ["postgres getaddrinfo ENOTFOUND db", "postgres getaddrinfo ENOTFOUND its address"],
    ["postgres getaddrinfo EAI_AGAIN db.internal.example", "postgres getaddrinfo EAI_AGAIN its address"],
    ["postgres connect ENOENT /var/run/postgresql/.s.PGSQL.5432", "postgres connect ENOENT its address"],
    ["redis connect to redis://u:p@cache:6379/0 failed", "redis connect to its address failed"],
    ["postgres at db.internal.example:5432 refused", "postgres at its address refused"],
    ["postgres did not answer within 2000 ms", "postgres did not answer within 2000 ms"],
  ])("%s", (text, shown) => {
    expect(withoutAddresses(text)).toBe(shown);
  });
});
