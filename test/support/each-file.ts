/**
 * Runs before each test file, also where files share a process: what the file starts ends with it.
 */
import { afterAll } from "vitest";
import { endAll } from "./at-end.ts";

afterAll(endAll);
