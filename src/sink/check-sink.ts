/**
 * Why a sink's configuration is refused when it is saved: all reasons at once. This is the one place that decides it, for the
 * API, the config file and code alike; what is special to a kind its own file says (kinds.ts).
 */
import { LIMITS } from "../message/limits.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { AddressGuard } from "./address-guard.ts";
import { checkHeaders, checkUrl } from "./check-target.ts";
import { KINDS } from "./kinds.ts";
import { KIND_SETTINGS, type KindSetting, type SinkFault, type SinkKindDefinition } from "./sink-kind.ts";

/** Where a configuration comes from: only code can bring the function of a function sink. */
export type SinkOrigin = "code" | "outside";

/** All reasons why a configuration is refused at save; empty when it may be saved. Nothing in it is trusted to have its type. */
export function checkSink(config: SinkConfig, guard: AddressGuard, origin: SinkOrigin = "outside"): SinkFault[] {
  const faults = neverWorks(config, origin);
  const { url } = config;
  if (kindOf(config.kind)?.takes.url !== undefined && typeof url === "string" && url !== "") {
    const reason = checkUrl(url, config.trusted === true ? guard.trusting : guard);
    if (reason !== null) faults.push(whole(reason));
  }
  return faults;
}

/** What no process can make a sink of, with any guard. */
export function neverWorks(config: SinkConfig, origin: SinkOrigin): SinkFault[] {
  const kind = kindOf(config.kind);
  const known = kind !== undefined && (kind.create !== null || origin === "code");
  return [...(known ? [] : [kindFault(config.kind, origin)]), ...checkShape(config), ...(kind ? checkKind(config, kind) : [])];
}

/** Undefined: there is no such kind. */
export function kindOf(kind: unknown): SinkKindDefinition | undefined {
  return typeof kind === "string" && Object.hasOwn(KINDS, kind) ? KINDS[kind as keyof typeof KINDS] : undefined;
}

const whole = (detail: string): SinkFault => ({ field: null, detail });

function kindFault(kind: unknown, origin: SinkOrigin): SinkFault {
  const offered = Object.keys(KINDS).filter((name) => origin === "code" || kindOf(name)?.create !== null);
  const missing = kind === undefined || kind === "";
  return { field: "kind", detail: `${missing ? "is missing:" : "must be"} one of ${offered.join(", ")}` };
}

/** What is the same for every kind. */
function* checkShape({ url, timeoutMs, headers, onUnknown }: SinkConfig): Generator<SinkFault> {
  if (url !== undefined && (typeof url !== "string" || url === "")) yield whole("the url must be text that is not empty");
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= LIMITS.leaseMsMax)) {
    yield { field: "timeoutMs", detail: `must be a whole number from 1 to ${LIMITS.leaseMsMax}` };
  }
  const headersReason = headers === undefined ? null : checkHeaders(headers);
  if (headersReason !== null) yield whole(headersReason);
  if (onUnknown !== undefined && onUnknown !== "retry" && onUnknown !== "hold") {
    yield { field: "onUnknown", detail: "must be retry or hold" };
  }
}

const sinkOf = ({ kind }: SinkConfig): string => `${/^[aeio]|^http/.test(kind) ? "an" : "a"} ${kind} sink`;

function* checkKind(config: SinkConfig, { takes, check }: SinkKindDefinition): Generator<SinkFault> {
  for (const [name, words] of Object.entries(KIND_SETTINGS) as [KindSetting, string][]) {
    const value = config[name];
    const absent = value === undefined || (Array.isArray(value) && value.length === 0);
    if (takes[name] === "needed" && absent) yield whole(`${sinkOf(config)} needs ${words}`);
    if (takes[name] === undefined && !absent) yield whole(`${sinkOf(config)} has no ${name}`);
  }
  if (check) yield* check(config);
}
