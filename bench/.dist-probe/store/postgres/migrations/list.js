/**
 * Every migration, in order. A new one goes at the end; none is ever changed or removed.
 */
import { kernel } from "./0001-kernel.js";
import { enqueueFunction } from "./0002-enqueue-function.js";
export const MIGRATIONS = [kernel, enqueueFunction];
//# sourceMappingURL=list.js.map