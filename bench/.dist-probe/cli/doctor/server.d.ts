import { type Finding } from "./finding.ts";
export declare function checkServer(url: string, token: string | null): Promise<Finding[]>;
