/** An engine that nobody put into the table of rooms. */
export const couch = 1;
