import type { ServerUser } from "./server-user.ts";
export interface Finished {
    /** Null when a signal ended it. */
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly output: string;
}
export declare const SERVER_ENV: NodeJS.ProcessEnv;
/** Rejects when the program cannot be started at all (ENOENT, EACCES, EPERM); anything it says itself is in the result. */
export declare function runProgram(command: string, args: readonly string[], user: ServerUser, options?: {
    readonly cwd?: string;
    readonly input?: string;
}): Promise<Finished>;
