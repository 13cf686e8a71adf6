import type { Events } from "./events.ts";
/** What is asked of the store, as plain values: this room does not know stores. */
export interface Levels {
    readonly messages: readonly {
        readonly topic: string;
        readonly status: string;
        readonly resolution: string | null;
        readonly count: number;
        readonly oldestMs: number | null;
    }[];
    readonly breakers: readonly {
        readonly topic: string;
        readonly state: "closed" | "half_open" | "open";
        readonly paused: boolean;
    }[];
    /** How long ago the store said so; null: it never did. */
    readonly ageMs: number | null;
    /** Whether it answers now. */
    readonly up: boolean;
}
export interface MetricsOptions {
    readonly events: Events;
    readonly version: string;
    /** The last known levels; must not hang. */
    readonly levels: () => Promise<Levels>;
}
export interface Metrics {
    readonly contentType: string;
    text(): Promise<string>;
    close(): void;
}
export declare function createMetrics({ events, version, levels }: MetricsOptions): Metrics;
