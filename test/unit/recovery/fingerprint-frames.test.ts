/** The top frame of stack traces in eight languages, and the message that stands with them. Every trace is written by us. */
import { describe, expect, it } from "vitest";
import { messageOf, topFrame } from "../../../src/recovery/fingerprint/trace.ts";

const TRACES: readonly (readonly [language: string, trace: string, frame: string, message: string])[] = [
  [
    "JavaScript",
    "TypeError: x is not a function\n    at node:internal/process/task_queues:95:5\n    at async charge (/app/src/pay.js:10:5)\n    at /app/src/main.js:3:1",
    "charge pay.js",
    "TypeError: x is not a function",
  ],
  [
    "Python",
    'Traceback (most recent call last):\n  File "/app/main.py", line 3, in <module>\n    run()\n  File "/app/pay.py", line 44, in charge\n    raise ValueError("no")\nValueError: no amount 5',
    "charge pay.py",
    "ValueError: no amount 5",
  ],
  [
    "Java",
    "com.acme.PayException: declined\n\tat java.base/java.lang.Thread.run(Thread.java:833)\n\tat com.acme.Pay.charge(Pay.java:42)\n\tat com.acme.Main.main(Main.java:7)\nCaused by: x",
    "com.acme.Pay.charge Pay.java",
    "com.acme.PayException: declined",
  ],
  [
    "Go",
    "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 18 [running]:\npanic({0x1004, 0xc0001})\n\t/usr/go/src/runtime/panic.go:884 +0x212\nmain.charge(0xc00010)\n\t/app/pay.go:12 +0x1d",
    "main.charge pay.go",
    "panic: runtime error: index out of range [5] with length 3",
  ],
  [
    "C#",
    "System.InvalidOperationException: no amount\n   at System.Linq.Enumerable.First[T](IEnumerable source)\n   at Acme.Pay.Charge(String id) in /src/Pay.cs:line 42",
    "Acme.Pay.Charge Pay.cs",
    "System.InvalidOperationException: no amount",
  ],
  ["Ruby", "app/pay.rb:42:in `charge': no amount (ArgumentError)\n\tfrom app/main.rb:3:in `<main>'", "charge pay.rb", ""],
  [
    "PHP",
    "PHP Fatal error:  Uncaught Exception: no amount in /app/Pay.php:12\nStack trace:\n#0 /app/Main.php(3): Acme\\Pay->charge('x')\n#1 {main}",
    "Acme\\Pay-> charge Main.php",
    "PHP Fatal error:  Uncaught Exception: no amount in /app/Pay.php:12",
  ],
  [
    "Rust",
    "thread 'main' panicked at src/pay.rs:10:5:\nno amount\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/abc/library/std/src/panicking.rs:645:5\n   1: core::panicking::panic_fmt\n             at /rustc/abc/library/core/src/panicking.rs:72:14\n   2: pay::charge::h0123456789abcdef\n             at ./src/pay.rs:10:5",
    "pay::charge pay.rs",
    "thread 'main' panicked at src/pay.rs:10:5:\nno amount",
  ],
];

describe("top frame", () => {
  it.each(TRACES)("%s", (_, trace, frame, message) => {
    expect(topFrame(trace)?.replaceAll(" ", "")).toBe(frame.replaceAll(" ", ""));
    if (message !== "") expect(messageOf(trace)).toBe(message);
  });

  it.each(TRACES)("%s: line numbers, addresses and folders do not matter", (_, trace) => {
    const moved = trace
      .replace(/(:|line |\()(\d+)/g, (_all, before: string, n: string) => before + (Number(n) + 7))
      .replaceAll("/app/", "/srv/other/");
    expect(topFrame(moved)).toBe(topFrame(trace));
  });

  it("says nothing of a text without a trace", () => {
    for (const text of [
      "",
      "at last",
      "no trace\nin two lines",
      "1: 2",
      "x".repeat(100_000),
      "at (",
      "#0 (",
      'File "',
      "\n".repeat(10_000),
    ]) {
      expect(topFrame(text)).toBeUndefined();
      expect(messageOf(text)).toBe(text);
    }
  });
});
