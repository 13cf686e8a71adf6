/** A topic that knows the kinds of sinks ("http" and "webhook") better than their list does. */
import type { DeclaredSink } from "../sink/kinds.ts";
import { KINDS } from "../sink/kinds.ts";

export const kinds: readonly string[] = ["http", "webhook", 'notify'];
export const needsUrl = (sink: DeclaredSink): boolean => {
  if (sink.kind === "http") return true;
  switch (sink.kind) { case "notify": return false; }
  return typeof sink === "function" || sink.kind in KINDS || sink.text === '"notify" and "webhook"';
};
export const usual = { kind: "http" };
