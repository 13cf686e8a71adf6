/** One. Two. Three. Four. Five sentences are too many. */
export type Outcome = { kind: "delivered" };
