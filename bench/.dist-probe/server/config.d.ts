import type { TopicDefinition } from "../message/topic.ts";
import { type Token } from "./auth.ts";
import { type SettingName, type Settings } from "./settings.ts";
export interface FileTopic {
    readonly definition: TopicDefinition;
    readonly paused: boolean | undefined;
}
export interface Config extends Omit<Settings, "tokens" | "sink_allow"> {
    readonly tokens: readonly Token[];
    readonly sink_allow: readonly string[];
    readonly topics: readonly FileTopic[];
    readonly config_path: string | null;
}
export type ConfigRead = {
    readonly ok: true;
    readonly config: Config;
} | {
    readonly ok: false;
    readonly faults: readonly string[];
};
export interface ConfigSources {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly cwd: string;
    /** What the command line said, by setting. */
    readonly flags?: Readonly<Partial<Record<SettingName, string>>> | undefined;
}
export declare function readConfig(sources: ConfigSources): Promise<ConfigRead>;
/** What a start prints: everything that matters and no secret. */
export declare function shownConfig(config: Config): Record<string, unknown>;
export declare function withoutPassword(url: string): string;
