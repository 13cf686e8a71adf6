/**
 * What every command gets: where to write, the configuration (read once, all its mistakes reported together) and whether
 * its output is for a program.
 */
import type { Config } from "../server/config/config.ts";
import type { SettingName } from "../server/config/settings.ts";
import type { ExitCode } from "./exit-code.ts";
import type { Io } from "./io.ts";

export interface CommandContext {
  readonly io: Io;
  readonly config: Config;
  readonly json: boolean;
  /** --init: what is missing of the store is made. */
  readonly init: boolean;
}

export interface Reading {
  /** What the command line said, by setting. */
  readonly flags?: Readonly<Partial<Record<SettingName, string>>>;
  /** With MAKEGOOD_URL a server is asked: a config file of this folder is then none of its business, and is not executed. */
  readonly asksServer?: boolean;
}

/** Runs a command's work with its context; its exit code becomes the process's. */
export type Run = (work: (context: CommandContext) => Promise<ExitCode>, reading?: Reading) => Promise<void>;
