export { createMemoryStore } from "../store/memory/memory-store.js";
export { sinkConformance } from "./sink-conformance.js";
export { storeConformance } from "./store-conformance/store-conformance.js";
//# sourceMappingURL=index.js.map