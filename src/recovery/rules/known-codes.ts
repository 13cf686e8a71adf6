/**
 * The documented spellings: which words of an error code mean the same, and to which class each code belongs. Nothing that is not
 * in this table is guessed; a phrase matches whole words in a row, never a part of a word.
 */

/** Classes that a rule may name. UNKNOWN is the class of codes that are in no other. */
export const CODE_CLASSES = ["TIMEOUT", "RATE_LIMIT", "AUTH", "CONNECTION", "BUDGET", "HTTP_4XX", "HTTP_5XX", "UNKNOWN"] as const;

export interface KnownCode {
  readonly code: string;
  readonly classes: readonly string[];
  /** Words in a row, as they stand in codes. */
  readonly phrases: readonly string[];
  /** Those that are also clear in a sentence; only read where the code itself says nothing. */
  readonly inText?: readonly string[];
}

export const KNOWN_CODES: readonly KnownCode[] = [
  {
    code: "RATE_LIMIT",
    classes: ["RATE_LIMIT"],
    phrases: [
      "RATE LIMIT",
      "RATE LIMITS",
      "RATE LIMITED",
      "RATE LIMITING",
      "RATELIMIT",
      "RATELIMITED",
      "THROTTLED",
      "THROTTLING",
    ],
    inText: ["RATE LIMIT EXCEEDED", "RATE LIMIT REACHED", "RATE LIMITED", "TOO MANY REQUESTS", "REQUEST WAS THROTTLED"],
  },
  { code: "RATE_LIMIT", classes: ["RATE_LIMIT"], phrases: ["TOO MANY REQUESTS", "THROTTLE", "RESOURCE EXHAUSTED"] },
  {
    code: "TIMEOUT",
    classes: ["TIMEOUT"],
    phrases: ["TIMEOUT", "TIMEOUTS", "TIMEDOUT", "TIMED OUT", "TIME OUT", "ETIMEDOUT", "ESOCKETTIMEDOUT", "DEADLINE EXCEEDED"],
    inText: [
      "TIMED OUT",
      "ETIMEDOUT",
      "ESOCKETTIMEDOUT",
      "DEADLINE EXCEEDED",
      "TIMEOUT EXCEEDED",
      "REQUEST TIMEOUT",
      "READ TIMEOUT",
    ],
  },
  // A timeout that was not given, or given wrongly, is no timeout that passed.
  {
    code: "TIMEOUT_SETTING",
    classes: [],
    phrases: [
      ...["NO TIMEOUT", "WITHOUT TIMEOUT", "INVALID TIMEOUT", "BAD TIMEOUT", "MISSING TIMEOUT", "UNKNOWN TIMEOUT", "SET TIMEOUT"],
      ...["TIMEOUT NOT SET", "TIMEOUT INVALID", "TIMEOUT MISSING", "TIMEOUT REQUIRED", "TIMEOUT UNSET", "TIMEOUT OUT OF RANGE"],
    ],
  },
  { code: "CONNECT_TIMEOUT", classes: ["TIMEOUT"], phrases: ["CONNECT TIMEOUT", "CONNECTION TIMEOUT", "CONNECTION TIMED OUT"] },
  {
    code: "CONNECTION_REFUSED",
    classes: ["CONNECTION"],
    phrases: ["CONNECTION REFUSED", "ECONNREFUSED"],
    inText: ["CONNECTION REFUSED", "ECONNREFUSED"],
  },
  {
    code: "CONNECTION_RESET",
    classes: ["CONNECTION"],
    phrases: ["CONNECTION RESET", "ECONNRESET", "EPIPE", "BROKEN PIPE", "SOCKET HANG UP"],
    inText: ["CONNECTION RESET", "ECONNRESET", "EPIPE", "BROKEN PIPE", "SOCKET HANG UP"],
  },
  {
    code: "UNREACHABLE",
    classes: ["CONNECTION"],
    phrases: ["EHOSTUNREACH", "ENETUNREACH", "HOST UNREACHABLE", "NETWORK UNREACHABLE"],
    inText: ["EHOSTUNREACH", "ENETUNREACH", "NO ROUTE TO HOST", "NETWORK IS UNREACHABLE"],
  },
  {
    code: "DNS",
    classes: ["CONNECTION"],
    phrases: ["DNS", "ENOTFOUND", "EAI AGAIN", "NAME RESOLUTION"],
    inText: ["ENOTFOUND", "EAI AGAIN", "NAME RESOLUTION"],
  },
  { code: "CONNECTION", classes: ["CONNECTION"], phrases: ["CONNECTION", "CONN", "NETWORK", "ECONNABORTED", "UND ERR SOCKET"] },
  {
    code: "AUTH",
    classes: ["AUTH"],
    phrases: ["AUTH", "AUTHENTICATION", "AUTHORIZATION", "AUTHORISATION", "INVALID TOKEN", "TOKEN EXPIRED", "EXPIRED TOKEN"],
    inText: ["AUTHENTICATION FAILED", "INVALID CREDENTIALS", "INVALID API KEY", "TOKEN EXPIRED", "TOKEN HAS EXPIRED"],
  },
  { code: "AUTH", classes: ["AUTH"], phrases: ["INVALID CREDENTIALS", "BAD CREDENTIALS", "INVALID API KEY"] },
  {
    code: "UNAUTHORIZED",
    classes: ["AUTH"],
    phrases: ["UNAUTHORIZED", "UNAUTHORISED", "UNAUTHENTICATED"],
    inText: ["UNAUTHORIZED", "UNAUTHORISED", "UNAUTHENTICATED"],
  },
  {
    code: "FORBIDDEN",
    classes: ["AUTH"],
    phrases: ["FORBIDDEN", "ACCESS DENIED", "PERMISSION DENIED", "EACCES"],
    inText: ["ACCESS DENIED", "PERMISSION DENIED"],
  },
  {
    code: "BUDGET",
    classes: ["BUDGET"],
    phrases: ["BUDGET", "BUDGETS", "QUOTA EXCEEDED", "INSUFFICIENT QUOTA", "OUT OF CREDITS", "INSUFFICIENT CREDITS"],
    inText: ["BUDGET EXCEEDED", "OVER BUDGET", "QUOTA EXCEEDED", "OUT OF CREDITS", "INSUFFICIENT CREDITS"],
  },
  { code: "HTTP_500", classes: ["HTTP_5XX"], phrases: ["INTERNAL SERVER ERROR"], inText: ["INTERNAL SERVER ERROR"] },
  { code: "HTTP_502", classes: ["HTTP_5XX"], phrases: ["BAD GATEWAY"], inText: ["BAD GATEWAY"] },
  { code: "HTTP_503", classes: ["HTTP_5XX"], phrases: ["SERVICE UNAVAILABLE"], inText: ["SERVICE UNAVAILABLE"] },
  { code: "HTTP_504", classes: ["HTTP_5XX"], phrases: ["GATEWAY TIMEOUT"], inText: ["GATEWAY TIMEOUT", "GATEWAY TIME OUT"] },
  { code: "HTTP_5XX", classes: ["HTTP_5XX"], phrases: ["HTTP 5XX", "5XX", "SERVER ERROR"] },
  { code: "HTTP_4XX", classes: ["HTTP_4XX"], phrases: ["HTTP 4XX", "4XX", "CLIENT ERROR"] },
];

/** A status says more than its hundred: what else it is called. 504 stays a server error: the one who answers is not the one who is late. */
export const STATUS_CODES: ReadonlyMap<number, { readonly code: string; readonly classes: readonly string[] }> = new Map([
  [401, { code: "UNAUTHORIZED", classes: ["AUTH"] }],
  [402, { code: "HTTP_402", classes: ["BUDGET"] }],
  [403, { code: "FORBIDDEN", classes: ["AUTH"] }],
  [408, { code: "HTTP_408", classes: ["TIMEOUT"] }],
  [429, { code: "RATE_LIMIT", classes: ["RATE_LIMIT"] }],
]);

/** Words before a number that make it an HTTP status. */
export const STATUS_WORDS: ReadonlySet<string> = new Set(["HTTP", "STATUS", "ERROR", "ERR"]);

/** Words that add nothing to a known code: RATE_LIMIT_EXCEEDED is RATE_LIMIT. In codes that are not known here they count. */
export const NOISE_WORDS: ReadonlySet<string> = new Set([
  "ERROR",
  "ERR",
  "E",
  "EXCEPTION",
  "FAILURE",
  "FAILED",
  "EXCEEDED",
  "REACHED",
  "HIT",
]);

/** Codes that say, without their noise, that something failed and not what; with them the message is read as well. */
export const GENERIC_CODES: ReadonlySet<string> = new Set([
  "",
  "UNKNOWN",
  "HANDLER",
  "HANDLER RETRY",
  "INTERNAL",
  "RUNTIME",
  "GENERIC",
]);
