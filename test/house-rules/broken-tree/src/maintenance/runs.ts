/** The one room where this word is at home. */
export const jobs = 1;
