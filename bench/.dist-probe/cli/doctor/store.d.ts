import type { CommandContext } from "../run.ts";
import { type Finding } from "./finding.ts";
export declare function checkStore({ io, config }: CommandContext): Promise<Finding[]>;
