/** attempt.outcome, as stored. */
export const OUTCOME_CODES = {
    delivered: 1,
    duplicate: 2,
    retry: 3,
    reject: 4,
    unknown: 5,
    lost: 6,
    interrupted: 7,
};
export const OUTCOME_NAMES = ["", "delivered", "duplicate", "retry", "reject", "unknown", "lost", "interrupted"];
/** dead_letter.resolution, as stored; 3 is a dead letter that was replayed and is no longer one. */
export const RESOLUTION_CODES = { open: 0, resolved: 1, discarded: 2, replayed: 3 };
export const RESOLUTION_NAMES = ["open", "resolved", "discarded"];
//# sourceMappingURL=db.js.map