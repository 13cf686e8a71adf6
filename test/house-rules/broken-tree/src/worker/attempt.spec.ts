/** A test beside the product. */
import { expect } from "vitest";

expect(1).toBe(1);
