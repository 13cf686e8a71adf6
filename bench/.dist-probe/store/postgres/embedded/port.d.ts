import type { DataDirectory } from "./data-directory.ts";
export declare function choosePort(previous: number | undefined): Promise<number>;
export declare function previousPort(directory: DataDirectory): Promise<number | undefined>;
export declare function rememberPort(directory: DataDirectory, port: number): Promise<void>;
