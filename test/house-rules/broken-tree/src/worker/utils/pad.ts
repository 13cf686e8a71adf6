/** A junk drawer. */
export const pad = 1;
