/**
 * What every part of the store gets: how a script is run, the names of keys, and the sources of time and chance.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { At } from "../store.ts";
import type { Keyspace } from "./keyspace.ts";
import { runLua, type Script } from "./lua.ts";
import type { RedisPort } from "./port.ts";
import { asStoreError } from "./redis-errors.ts";

export interface Db {
  readonly keys: Keyspace;
  readonly clock: Clock;
  readonly random: Random;
  /** Who we are among those who give wake hints. */
  readonly instance: string;
  port(): RedisPort;
  /** `keys` without the root for the fixed ones; every script gets root, moment and instance before its own arguments. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], at?: At): Promise<unknown>;
  /** A plain command on one key. */
  command(during: string, key: string, args: readonly string[], writes?: boolean): Promise<unknown>;
}

export interface DbOptions {
  readonly keys: Keyspace;
  readonly clock: Clock;
  readonly random: Random;
  /** Throws `closed` once the store is. */
  readonly port: () => RedisPort;
}

export function createDb({ keys, clock, random, port }: DbOptions): Db {
  const instance = Buffer.from(random.bytes(8)).toString("hex");
  return {
    keys,
    clock,
    random,
    instance,
    port,
    async run(script, named, args, at) {
      const moment = at?.now === undefined ? "" : String(at.now.getTime());
      return runLua(port(), script, named, [keys.root, moment, instance, ...args.map(String)]);
    },
    async command(during, key, args, writes = false) {
      try {
        return await port().send(key, args);
      } catch (error) {
        throw asStoreError(error, during, writes);
      }
    },
  };
}

export function closedError(): MakegoodError {
  return new MakegoodError("closed", "The Redis store is closed.");
}
