/**
 * The front door: exports only.
 */
export { createMakegood, } from "./create.js";
export { topic } from "./delivery/topic.js";
export { isMakegoodError, MakegoodError } from "./message/errors.js";
export { DELIVERED, DUPLICATE } from "./message/outcome.js";
export { reject, retry } from "./sink/function.js";
export { createMemoryStore } from "./store/memory/memory-store.js";
//# sourceMappingURL=index.js.map