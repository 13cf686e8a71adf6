/**
 * Why a sink's configuration is refused when it is saved: all reasons at once. It knows no sink's code, so that reading a configuration
 * loads none.
 */
import { isObject } from "../message/json.ts";
import { LIMITS } from "../message/limits.ts";
import type { SinkConfig } from "../message/topic.ts";
import type { AddressGuard } from "./address-guard.ts";
import { checkHeaders, checkUrl } from "./check-target.ts";
import { checkSecret } from "./sign-webhook.ts";

const SECRETS_MAX = 10;
const STATUS_OUTCOMES = new Set<unknown>(["delivered", "duplicate", "retry", "reject", "unknown"]);

/** All reasons why a configuration is refused at save; empty when it may be saved. Nothing in it is trusted to have its type. */
export function checkSink(config: SinkConfig, guard: AddressGuard): string[] {
  const reasons = neverWorks(config);
  if (config.kind !== "function" && typeof config.url === "string" && config.url !== "") {
    const reason = checkUrl(config.url, config.trusted === true ? guard.trusting : guard);
    if (reason !== null) reasons.push(reason);
  }
  return reasons;
}

/** What no process can make a sink of, with any guard. */
export const neverWorks = (config: SinkConfig): string[] => [...checkShape(config), ...checkSecrets(config)];

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
  if (!isObject(statusMap)) {
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
