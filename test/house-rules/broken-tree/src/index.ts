/** The front door, with logic in it and a way to the right of itself. */
export { main } from "./cli/main.ts";
export type { Outcome } from "./message/outcome.ts";

export const version = "0";
