/** A value, or what is wrong with the text. */
export type Reading<T> = {
    readonly value: T;
} | {
    readonly fault: string;
};
export interface Setting<T> {
    readonly env: string;
    /** A secret: also read from the file that `<env>_FILE` names, and never repeated in an error. */
    readonly secret: boolean;
    readonly fallback: T;
    /** Undefined: not a setting of the file, because it is about the caller's side. */
    readonly inFile: boolean;
    read(text: string): Reading<T>;
}
export declare const SETTINGS: {
    readonly port: Setting<number>;
    readonly host: Setting<string>;
    readonly hosts: Setting<readonly string[]>;
    readonly data_dir: Setting<string>;
    readonly database_url: Setting<string | null>;
    readonly schema: Setting<string>;
    readonly sink_allow: Setting<readonly string[] | null>;
    readonly tokens: Setting<string | null>;
    readonly concurrency: Setting<number>;
    readonly poll_ms: Setting<number>;
    readonly drain_ms: Setting<number>;
    readonly kept_days: Setting<number>;
    readonly payload_bytes_max: Setting<number>;
    readonly log: Setting<"json" | "text" | null>;
    readonly log_level: Setting<"debug" | "error" | "info" | "warn">;
    readonly url: Setting<string | null>;
    readonly token: Setting<string | null>;
    readonly config: Setting<string | null>;
};
export type SettingName = keyof typeof SETTINGS;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
/** All settings with their values, as read. */
export type Settings = {
    readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]>;
};
export {};
