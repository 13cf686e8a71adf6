/** A part that several sinks may use. */
export const send = 1;
