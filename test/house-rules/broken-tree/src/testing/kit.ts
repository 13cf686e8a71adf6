/** Test code, where it belongs. */
import { it } from "vitest";

export const onlyForTests = it;
