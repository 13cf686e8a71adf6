import type { Log } from "../observe/log.ts";
import { type ExitCode } from "./exit-code.ts";
import { type Io } from "./io.ts";
export interface Stoppable {
    close(): Promise<void>;
}
/** `start` gets a function that ends the run as failed. */
export declare function untilSignal(io: Io, log: Log, start: (fail: (reason: string) => void) => Promise<Stoppable>): Promise<ExitCode>;
