/**
 * What every part of the store gets: how a script is run, the names of keys, and the sources of time and chance.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { At } from "../store.ts";
import type { Epoch } from "./epoch.ts";
import type { Keyspace } from "./keyspace.ts";
import { runLua, type Script } from "./lua.ts";
import type { RedisPort } from "./port.ts";
import { asStoreError, replyCode } from "./redis-errors.ts";
import { LOST_DATA } from "./scripts/script.ts";

/** How often one call may find that the data is new again before it gives up. */
const LOSSES_MAX = 3;

export interface Db {
  readonly keys: Keyspace;
  readonly clock: Clock;
  readonly random: Random;
  /** Who we are among those who give wake hints; 16 characters. */
  readonly instance: string;
  port(): RedisPort;
  /**
   * `keys` without the root for the fixed ones; every script gets root, moment and instance before its own arguments. When Redis lost
   * its data nothing ran: topics are declared again first, and then it runs.
   */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], at?: At): Promise<unknown>;
  /** Likewise, without a look at the mark of the data. */
  unmarked(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** A plain command on one key. */
  command(during: string, key: string, args: readonly string[], writes?: boolean): Promise<unknown>;
}

export interface DbOptions {
  readonly keys: Keyspace;
  readonly clock: Clock;
  readonly random: Random;
  readonly now?: (() => number) | undefined;
  /** Throws `closed` once the store is. */
  readonly port: () => RedisPort;
  readonly epoch: Pick<Epoch, "mark" | "look">;
}

export function createDb({ keys, clock, random, port, now, epoch }: DbOptions): Db {
  const instance = Buffer.from(random.bytes(8)).toString("hex");
  return {
    keys,
    clock,
    random,
    instance,
    port,
    async run(script, named, args, at) {
      const moment = at?.now === undefined ? (now ? String(Math.floor(now())) : "") : String(at.now.getTime());
      const texts = args.map(String);
      for (let losses = 0; ; losses++) {
        try {
          return await runLua(port(), script, named, [keys.root, moment, instance + epoch.mark(), ...texts]);
        } catch (error) {
          if (replyCode(error) !== LOST_DATA) throw error;
          if (losses >= LOSSES_MAX) throw lostAgain(script.name);
          await epoch.look();
        }
      }
    },
    unmarked: (script, named, args) => runLua(port(), script, named, [keys.root, "", instance, ...args.map(String)]),
    async command(during, key, args, writes = false) {
      try {
        return await port().send(key, args);
      } catch (error) {
        throw asStoreError(error, during, writes);
      }
    },
  };
}

function lostAgain(during: string): MakegoodError {
  return new MakegoodError("store_unavailable", `${during}: Redis loses its data again and again; nothing was done`, { during });
}

export function closedError(): MakegoodError {
  return new MakegoodError("closed", "The Redis store is closed.");
}
