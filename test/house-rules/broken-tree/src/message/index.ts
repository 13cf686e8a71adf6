/** A barrel that is no door. */
export * from "./outcome.ts";
