/**
 * What is not as it should be, as a fact with a beginning: health, doctor, metrics and the status page show the same list. Each
 * part of the program adds what it knows; nothing acts on the list.
 */
export interface Finding {
  /** One word for the kind, the same for ever: `store_refuses`, `store_lost_data`, … */
  readonly what: string;
  /** The topic it is about; null: all of them. */
  readonly topic: string | null;
  /** What a person should read. */
  readonly reason: string;
  /** Wall clock; null: nobody knows. */
  readonly sinceMs: number | null;
  /** `unhealthy`: nothing can be accepted. `degraded`: works, and a person should look. `note`: as a person wanted it. */
  readonly severity: "unhealthy" | "degraded" | "note";
}
