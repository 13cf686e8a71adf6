/** A room in the middle. */
export const engine = 1;
