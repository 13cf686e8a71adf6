/**
 * One thing that is wrong with an input: the one shape of it, in every room.
 */
export interface Fault {
  /** A path such as `sink.timeout_ms`; `.` or empty is the whole. */
  readonly field: string;
  readonly detail: string;
}
