/** N9: what our own process lacks is told from what the receiver does. */
import { describe, expect, it } from "vitest";
import { outcomeOfFailure } from "../../src/sink/failure.ts";
import { functionSink, unserved } from "../../src/sink/function.ts";
import { send } from "./receiver.ts";

const error = (code: string, text = code): Error => Object.assign(new Error(text), { code });

describe("a connection that was not made", () => {
  it.each([
    ["EMFILE", "no_descriptor"],
    ["ENFILE", "no_descriptor"],
    ["ENOMEM", "out_of_memory"],
    ["ENOBUFS", "no_buffer"],
    ["EADDRNOTAVAIL", "no_local_port"],
    ["EADDRINUSE", "no_local_port"],
    ["EPERM", "dial_forbidden"],
    ["MAKEGOOD_ADDRESS_REFUSED", "address_refused"],
    ["UND_ERR_DESTROYED", "sink_closed"],
  ])("%s is ours", (code, told) => {
    expect(outcomeOfFailure(error(code), false)).toMatchObject({ kind: "unserved", code: told });
    expect(outcomeOfFailure(error(code), true).kind, "once something was sent nobody knows").toBe("unknown");
  });

  it.each(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"])("%s is not", (code) => {
    expect(outcomeOfFailure(error(code), false).kind).toBe("retry");
  });

  it("a name with several addresses: the receiver refused if one of them says so", () => {
    const mixed = Object.assign(new AggregateError([error("EADDRNOTAVAIL"), error("ECONNREFUSED")]), { code: "EADDRNOTAVAIL" });
    expect(outcomeOfFailure(mixed, false).kind).toBe("retry");
    const ours = Object.assign(new AggregateError([error("EMFILE"), error("EMFILE")]), { code: "EMFILE" });
    expect(outcomeOfFailure(ours, false)).toMatchObject({ kind: "unserved", code: "no_descriptor" });
  });
});

describe("a function", () => {
  const thrown = async (what: unknown) =>
    (
      await send(
        functionSink(() => {
          throw what;
        }),
      )
    ).outcome;

  it("that runs into the limits of its process is not a failed attempt, also inside a fetch", async () => {
    expect(await thrown(error("EMFILE"))).toMatchObject({ kind: "unserved", code: "no_descriptor" });
    expect(await thrown(new TypeError("fetch failed", { cause: error("EMFILE") }))).toMatchObject({ kind: "unserved" });
    expect(await thrown(new RangeError("Array buffer allocation failed"))).toMatchObject({ code: "out_of_memory" });
    expect(await thrown(error("EACCES"))).toMatchObject({ kind: "retry", code: "handler_error" });
  });

  it("may say so itself", async () => {
    expect(await thrown(unserved("no key yet", { code: "no_key" }))).toMatchObject({ kind: "unserved", code: "no_key" });
    const sink = functionSink(() => ({ kind: "unserved" }));
    expect((await send(sink)).outcome).toEqual({ kind: "unserved", code: "handler_error", error: "the handler gave no reason" });
  });
});
