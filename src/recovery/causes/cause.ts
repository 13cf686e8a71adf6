/** The causes a failure can have: what is wrong and where. Which action helps is decided by rules and by what was learned. */
export const CAUSES = [
  "outage",
  "overload_or_quota",
  "network",
  "timeout",
  "auth_or_permission",
  "bad_payload",
  "missing_target",
  "conflict_or_duplicate",
  "bug_in_receiver",
  "bug_in_sender",
  "config_or_tls",
  "resource_exhausted",
  "business_refusal",
  "transient_db",
  "unknown",
] as const;

export type Cause = (typeof CAUSES)[number];
