/**
 * What a Lua script is here, and how one is run: by its hash, and with its text when the server does not know it (a restart, a
 * failover, SCRIPT FLUSH; nothing ran then). The first line makes Redis check a script before it runs (memory, role, disk
 * errors), so that a refusal means that nothing was written; an error of the server becomes one of our codes.
 */
import { hash } from "node:crypto";
import type { RedisPort } from "./port.ts";
import { asStoreError, replyCode } from "./redis-errors.ts";

export interface Script {
  readonly name: string;
  readonly text: string;
  readonly sha: string;
  /** Whether it changes something, so that a lost answer leaves its outcome unknown. */
  readonly writes: boolean;
}

/**
 * `grows`: refused when Redis is full. `settles`: runs all the same, because what it does lets the store drain. `reads`: changes nothing.
 */
export type ScriptKind = "grows" | "settles" | "reads";

const FLAGS: Readonly<Record<ScriptKind, string>> = { grows: "", settles: " flags=allow-oom", reads: " flags=no-writes" };

export function luaScript(name: string, kind: ScriptKind, body: string): Script {
  const text = `#!lua${FLAGS[kind]}\n${body}`;
  return { name, text, sha: hash("sha1", text, "hex"), writes: kind !== "reads" };
}

export async function runLua(
  redis: RedisPort,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args];
  const key = keys[0] ?? null;
  try {
    try {
      return await redis.send(key, ["EVALSHA", script.sha, ...rest]);
    } catch (error) {
      if (replyCode(error) !== "NOSCRIPT") throw error;
      return await redis.send(key, ["EVAL", script.text, ...rest]);
    }
  } catch (error) {
    throw asStoreError(error, script.name, script.writes);
  }
}
