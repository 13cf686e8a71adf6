/**
 * What an answer says about the audit service as a whole. While it is away (refused, not there, full, overloaded, silent to several
 * records in a row, or set up so that it takes nothing) its records wait and spend no attempts, for a week if need be (CON-12, DA-28).
 */
import type { Outcome } from "../../message/outcome.ts";

/** Nothing was sent, or something in front of the service answered for it, or a person has to change a setting first. */
const AWAY = new Set([
  "connection_refused",
  "connection_reset",
  "connection_failed",
  "connect_timeout",
  "dns",
  "tls",
  "sink_closed",
  "http_401",
  "http_403",
  "http_404",
  "http_405",
  "http_421",
  "http_429",
  "http_501",
  "http_502",
  "http_503",
  "http_504",
  "http_507",
]);
const SETTINGS = /^http_(?:401|403|404|405|421|501)$/;

/** So many different records without any answer in between: it is the service, not the record. */
const SILENT_RECORDS = 5;

export interface Service {
  /** The outcome of one try, with `outage` where it says nothing about the record. */
  judge(eventId: string, outcome: Outcome): Outcome;
}

/** One for all types: they share the service. */
export function createService(): Service {
  const silent = new Set<string>();
  return {
    judge(eventId, outcome) {
      if (outcome.kind === "unknown") {
        if (silent.size < SILENT_RECORDS) silent.add(eventId);
        return silent.size >= SILENT_RECORDS ? { ...outcome, outage: true } : outcome;
      }
      if (outcome.kind === "retry" && AWAY.has(outcome.code)) {
        return { ...outcome, outage: true, alert: outcome.alert === true || SETTINGS.test(outcome.code) };
      }
      silent.clear();
      return outcome;
    },
  };
}
