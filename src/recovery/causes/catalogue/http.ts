/** What a status says where the text says nothing. The statuses that the seeds' rules know by themselves are left to them. */
import { type Signature, sign } from "../signature.ts";

const STATUS_ONLY = 0.5;

export const HTTP: readonly Signature[] = [
  sign("method", "bug_in_sender.route", 0.94, "the address is right and the method is not, or the other way round", {
    codes: ["UNIMPLEMENTED", "METHOD_NOT_ALLOWED", "NOT_IMPLEMENTED"],
    words: [
      "method (is )?not (allowed|supported|found|implemented)|request method|(http )?method … not (supported|allowed)",
      "unimplemented|not implemented|unknown method|unsupported (method|operation)|http verb",
    ],
  }),
  sign("status_failed", "outage.passing", STATUS_ONLY, "the receiver failed inside", { status: [500] }),
  sign("status_down", "outage", STATUS_ONLY, "the receiver does not serve now", {
    status: [502, 503, 520, 521, 522, 523, 525, 526, 527, 529, 530],
  }),
  sign("status_late", "timeout", STATUS_ONLY, "no answer came in time", { status: [408, 504, 524, 598, 599] }),
  sign("status_rate", "overload_or_quota", STATUS_ONLY, "the receiver limits the rate", { status: [429] }),
  sign("status_unpaid", "overload_or_quota.spent", STATUS_ONLY, "the receiver wants to be paid first", { status: [402] }),
  sign("status_denied", "auth_or_permission", STATUS_ONLY, "the receiver does not allow it", { status: [401, 403] }),
  sign("status_full", "resource_exhausted", STATUS_ONLY, "the receiver has no room left", { status: [507] }),
  sign("status_locked", "transient_db", STATUS_ONLY, "the receiver says that it is locked", { status: [423] }),
  sign("status_early", "outage.passing", STATUS_ONLY, "the receiver says that it is too early", { status: [425] }),
  sign("status_route", "bug_in_sender.route", STATUS_ONLY, "the receiver does not take this method", { status: [405, 501] }),
  sign("status_moved", "config_or_tls", STATUS_ONLY, "the address has moved, or asks for another protocol", {
    status: [300, 301, 302, 303, 305, 307, 308, 407, 421, 426, 511],
  }),
  sign("status_missing", "missing_target", STATUS_ONLY, "the receiver does not know what it is about", { status: [404] }),
  sign("status_gone", "missing_target.gone", STATUS_ONLY, "the receiver says that it is gone for good", { status: [410] }),
  sign("status_conflict", "conflict_or_duplicate", STATUS_ONLY, "the receiver says that it collides with its state", {
    status: [409, 412, 428],
  }),
  sign("status_legal", "business_refusal", STATUS_ONLY, "the receiver may not do it", { status: [451] }),
  sign("status_refused", "bad_payload", STATUS_ONLY, "the receiver refuses the request as it is", {
    status: [400, 406, 411, 413, 414, 415, 416, 417, 418, 422, 424, 431],
  }),
];
