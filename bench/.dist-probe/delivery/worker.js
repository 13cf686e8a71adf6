/**
 * What a worker offers to whoever started it. The dispatcher is the one that works.
 */
export {};
//# sourceMappingURL=worker.js.map