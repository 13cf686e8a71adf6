/**
 * Scripts of the doors beside the store (streams, the seeds' port): how one is made and run. Sent by its hash, and with its text
 * when the server does not know it (a restart, SCRIPT FLUSH); an error of the server becomes one of our codes.
 */
import { hash } from "node:crypto";
import type { RedisPort } from "./port.ts";
import { asStoreError, replyCode } from "./redis-errors.ts";
import type { Script } from "./scripts/script.ts";

/**
 * `grows`: refused when Redis is full. `settles`: runs all the same, because it lets something drain. `reads`: changes nothing.
 */
export function luaScript(name: string, kind: "grows" | "settles" | "reads", body: string): Script {
  const flags = { grows: "", settles: " flags=allow-oom", reads: " flags=no-writes" }[kind];
  const text = `#!lua${flags}\n${body}`;
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
