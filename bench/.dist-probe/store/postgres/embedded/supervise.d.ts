import { type Loop } from "../../../platform/loop.ts";
import type { Registration } from "./attached.ts";
import { type RunningServer } from "./ensure-server.ts";
import type { ServerContext } from "./launch.ts";
export interface SuperviseOptions {
    readonly context: ServerContext;
    readonly registration: Registration;
    readonly current: () => RunningServer;
    readonly replaced: (server: RunningServer) => void;
    /** Then an interrupted restart is no failure: the server is not wanted any more. */
    readonly stopping: () => boolean;
}
export declare function supervise({ context, registration, current, replaced, stopping }: SuperviseOptions): Loop;
