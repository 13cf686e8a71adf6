/** Judges by itself what conclude() is there for. */
import { decide } from "../message/decide.ts";

export const verdict = decide;
