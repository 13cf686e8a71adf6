/** The inside of an engine. */
export const pool = 1;
