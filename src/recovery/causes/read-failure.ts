/** A failure as signatures look at it: words line by line without addresses and frames, the codes it names, its status. */
import { frameAt } from "../fingerprint/trace.ts";
import { wordsOf } from "../rules/code-words.ts";
import { INPUT_LIMITS } from "../rules/rule.ts";

export interface FailureText {
  readonly errorCode: string;
  readonly errorMessage?: string;
  readonly stackTrace?: string | null;
  /** Where the reporter knows it beside a code of the receiver's own. */
  readonly httpStatus?: number | undefined;
}

export type ReadFailure = ReturnType<typeof readFailure>;

/** Members that hold a code in the answers of many systems, in JSON and in XML; and how SQLSTATE is written. */
const MEMBERS = [
  /"(?:\w*code|type|errors?|reason|status|name|category|issue|errno|sqlstate|state)"\s*:\s*"?([\w.-]{1,80})"?/gi,
  /<(?:\w+:)?(?:\w*code|type)>\s*([\w.:-]{1,80})\s*</gi,
  /\bsqlstate\W{0,3}([0-9A-Z]{5})\b/gi,
];
const MEMBERS_MAX = 50;

/** A code in its one spelling. */
export const spelled = (code: string): string => wordsOf(code).join("_");

/** Statuses are taken where they stand as one: http_404, "status": 404, HTTP 404, 404 Not Found at the beginning. */
const STATUS =
  /^(?:http[ _-]?|status[ _-]?|error[ _-]?)?([1-5]\d\d)$|\b(?:http|status(?: ?code)?|error code)\W{1,4}([1-5]\d\d)\b|^\W{0,2}([1-5]\d\d)\b(?: [A-Z]|\W*$)/im;

function statusIn(text: string): number | undefined {
  const found = STATUS.exec(text);
  return found === null ? undefined : Number(found[1] ?? found[2] ?? found[3]);
}

/** What is said, without what only says where: frames of a trace and addresses. */
function saidIn(text: string): string {
  const lines = text.split("\n");
  return lines
    .filter((_, i) => frameAt(lines, i) === undefined)
    .join("\n")
    .replace(/\bhttps?:\/\/[^\s"'<>)]+/gi, " ");
}

const lined = (text: string): string =>
  text
    .replace(/"[\w.$@-]+"\s*:(?:\s*(?:null|true|false|[\d.]+)\b)?/g, "\n")
    .replace(/['’`]/g, "")
    .split(/\n|[.;!?]\s|",\s*"|",\s*\{/)
    .map((line) => wordsOf(line, INPUT_LIMITS.messageChars).join(" "))
    .filter((line) => line !== "")
    .join("\n")
    .toLowerCase();

/** A class of an exception by its name: `Acme::ParseError` raises parse error. */
const EXCEPTION = /\b[A-Z][A-Za-z0-9]*(?:Error|Exception)\b/g;

/** `codeSpeaks`: the code says nothing that the seeds' rules know, so it and its status are read, too. */
export function readFailure({ errorCode, errorMessage = "", stackTrace, httpStatus }: FailureText, codeSpeaks: boolean) {
  const code = errorCode.slice(0, INPUT_LIMITS.codeChars);
  const message = errorMessage.slice(0, INPUT_LIMITS.messageChars);
  const text = saidIn(`${message}\n${(stackTrace ?? "").slice(0, INPUT_LIMITS.stackChars)}`);
  /** Codes in their one spelling → where they stand. */
  const codes = new Map<string, "code" | "text">();
  for (const pattern of MEMBERS) {
    for (const [, value = ""] of text.matchAll(pattern)) if (codes.size < MEMBERS_MAX) codes.set(spelled(value), "text");
  }
  codes.set(spelled(code), "code");
  const raised = (text.match(EXCEPTION) ?? []).slice(0, MEMBERS_MAX).map((name) => `raised ${name}`);
  const words = lined([...(codeSpeaks ? [code] : []), text, ...raised].join("\n"));
  return { words, codes, status: codeSpeaks ? (statusIn(code) ?? httpStatus ?? statusIn(message)) : undefined };
}
