/** A folder that is no room. */
export const thing = 1;
