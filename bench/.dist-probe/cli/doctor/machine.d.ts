import type { Config } from "../../server/config.ts";
import { type Finding } from "./finding.ts";
export declare function checkNode(): Finding;
export declare function checkConfiguration(config: Config): Promise<Finding[]>;
