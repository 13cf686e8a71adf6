import { type PosterDeps, type PosterOptions } from "./poster.ts";
import type { Delivery, Sink } from "./sink.ts";
/** Takes one line without control characters. */
export type LogLine = (line: string) => void;
export interface NotifySinkOptions extends Omit<PosterOptions, "url"> {
    readonly url?: string | undefined;
}
export interface NotifySinkDeps extends PosterDeps {
    readonly log: LogLine;
}
export declare function notifySink(options: NotifySinkOptions, deps: NotifySinkDeps): Sink;
/** The text that is posted for a message. */
export declare function notifyText(delivery: Pick<Delivery, "id" | "topic" | "payload">): string;
