import type { Config } from "../server/config.ts";
import { type ExitCode } from "./exit-code.ts";
import { type Io } from "./io.ts";
export interface ApiAnswer {
    readonly status: number;
    readonly text: string;
}
export interface Api {
    /** `body` is JSON text. */
    call(method: string, path: string, body?: string): Promise<ApiAnswer>;
    close(): Promise<void>;
}
export declare function openApi(io: Io, config: Config): Promise<Api>;
/** Runs one conversation and says what went wrong, in words and in the exit code. */
export declare function withApi(io: Io, config: Config, use: (api: Api) => Promise<ExitCode>): Promise<ExitCode>;
/** True when the answer was good; otherwise it has been reported and `exit` says how. */
export declare function refusedAnswer(io: Io, answer: ApiAnswer, asJson: boolean): ExitCode | null;
