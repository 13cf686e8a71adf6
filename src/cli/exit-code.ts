/**
 * What the command line's exit code says. The numbers are documented in the README and do not change.
 */
export const EXIT = {
  ok: 0,
  /** It was tried and failed. */
  failed: 1,
  /** Wrong arguments, a wrong configuration or no confirmation: nothing was tried. */
  usage: 2,
  /** check-redis: nobody answered, so nothing could be examined. */
  unreachable: 2,
  notFound: 3,
  conflict: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code for an answer of the API. */
export function exitCodeOf(status: number, code: string): ExitCode {
  if (status < 400) return EXIT.ok;
  if (status === 404 || code === "unknown_topic") return EXIT.notFound;
  if (status === 409 || code === "key_conflict") return EXIT.conflict;
  return status === 400 || status === 413 ? EXIT.usage : EXIT.failed;
}

/** Ends a command: its text is said, and its code is the process's. */
export class Stop extends Error {
  readonly exit: ExitCode;

  constructor(text: string, exit: ExitCode = EXIT.usage) {
    super(text);
    this.exit = exit;
  }
}
