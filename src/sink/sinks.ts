/**
 * From a topic's stored sink configuration to a running sink, and the list of reasons why a configuration is refused when
 * it is saved. Function sinks are not made here: they live in the code that declares them.
 */
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { AddressGuard } from "./address-guard.ts";
import { checkHeaders, checkUrl } from "./check-target.ts";
import { httpSink } from "./http.ts";
import { type LogLine, notifySink } from "./notify.ts";
import { checkSecret } from "./sign-webhook.ts";
import type { Sink } from "./sink.ts";
import { webhookSink } from "./webhook.ts";

export interface SinkDeps {
  readonly guard: AddressGuard;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: LogLine;
}

const SECRETS_MAX = 10;
const STATUS_OUTCOMES = new Set(["delivered", "duplicate", "retry", "reject", "unknown"]);

/**
 * Throws `sink_refused` for a configuration that could never work. An address that the guard refuses is not one of
 * them: the sink is made, sends nothing and answers `unserved`, because another process may have another guard.
 */
export function createSink(config: SinkConfig, deps: SinkDeps): Sink {
  const reasons = [...checkShape(config), ...checkSecrets(config)];
  if (reasons.length > 0) throw new MakegoodError("sink_refused", reasons.join("; "), { kind: config.kind, reasons });
  const { url, headers, timeoutMs, trusted } = config;
  switch (config.kind) {
    case "http":
      return httpSink({ url: url as string, headers, timeoutMs, trusted, statusMap: config.statusMap }, deps);
    case "webhook":
      return webhookSink({ url: url as string, headers, timeoutMs, trusted, secrets: config.secrets ?? [] }, deps);
    case "notify":
      return notifySink({ url, headers, timeoutMs, trusted }, deps);
    case "function":
      throw new MakegoodError("sink_refused", "a function sink is given in code, it cannot be made from a configuration");
  }
}

/** All reasons why a configuration is refused at save; empty when it may be saved. Nothing in it is trusted to have its type. */
export function checkSink(config: SinkConfig, guard: AddressGuard): string[] {
  const reasons = [...checkShape(config), ...checkSecrets(config)];
  if (config.kind !== "function" && typeof config.url === "string" && config.url !== "") {
    const reason = checkUrl(config.url, config.trusted === true ? guard.trusting : guard);
    if (reason !== null) reasons.push(reason);
  }
  return reasons;
}

function* checkShape(config: SinkConfig): Generator<string> {
  const { kind, url, timeoutMs, headers, statusMap, onUnknown } = config;
  if (!["http", "webhook", "notify", "function"].includes(kind)) yield `"${String(kind)}" is not a kind of sink`;
  if ((kind === "http" || kind === "webhook") && (url === undefined || url === "")) yield `a ${kind} sink needs a url`;
  else if (url !== undefined && (typeof url !== "string" || url === "")) yield "the url must be text";
  if (kind === "function" && url !== undefined) yield "a function sink has no url";
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= LIMITS.leaseMsMax)) {
    yield `timeoutMs must be above 0 and at most ${LIMITS.leaseMsMax}`;
  }
  const headersReason = headers === undefined ? null : checkHeaders(headers);
  if (headersReason !== null) yield headersReason;
  if (onUnknown !== undefined && onUnknown !== "retry" && onUnknown !== "hold") yield "onUnknown must be retry or hold";
  if (statusMap !== undefined) yield* checkStatusMap(kind, statusMap);
}

function* checkStatusMap(kind: string, statusMap: unknown): Generator<string> {
  if (kind !== "http") yield `a ${kind} sink has no statusMap`;
  if (typeof statusMap !== "object" || statusMap === null || Array.isArray(statusMap)) {
    yield "statusMap must be an object from status to outcome";
    return;
  }
  for (const [status, outcome] of Object.entries(statusMap)) {
    if (!/^[2-5]\d\d$/.test(status)) yield `statusMap: ${JSON.stringify(status)} is not a final HTTP status`;
    if (!STATUS_OUTCOMES.has(outcome)) yield `statusMap: ${status} must be one of ${[...STATUS_OUTCOMES].join(", ")}`;
  }
}

function* checkSecrets({ kind, secrets }: SinkConfig): Generator<string> {
  if (kind !== "webhook") {
    if (secrets !== undefined && secrets.length > 0) yield `a ${kind} sink has no secrets`;
    return;
  }
  if (secrets === undefined || !Array.isArray(secrets) || secrets.length === 0) yield "a webhook sink needs at least one secret";
  else if (secrets.length > SECRETS_MAX) yield `at most ${SECRETS_MAX} secrets are allowed`;
  else {
    const reason = secrets.map(checkSecret).find((found) => found !== null);
    if (reason !== undefined) yield reason;
  }
}
