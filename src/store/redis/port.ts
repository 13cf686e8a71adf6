/**
 * The port to Redis: one way to send a command, to listen, and to open another connection, the same for every client
 * library. The port has connections of its own and sends each command once: a command that may have arrived without an
 * answer is `outcome_unknown`, one that was not sent is `store_unavailable`, and the server's own errors come as they are.
 */
import { errorText, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock, type Timer } from "../../platform/clock.ts";
import { type IoredisClient, ioredisDriver } from "./ioredis.ts";
import { type NodeRedisClient, nodeRedisDriver } from "./node-redis.ts";
import { replyCode } from "./redis-errors.ts";
import type { Driver, RedisArgument, RedisNode, Wire } from "./wire.ts";

export interface SendOptions {
  /** How long to wait for the answer instead of the port's own deadline; a blocking command adds the time it may block. */
  readonly timeoutMs?: number | undefined;
}

export interface RedisPort {
  readonly kind: "node-redis" | "ioredis";
  readonly cluster: boolean;
  /** `key` chooses the node of a cluster; null: any node. Answers are plain arrays, strings, numbers and null, as in RESP2. */
  send(key: string | null, args: readonly RedisArgument[], options?: SendOptions): Promise<unknown>;
  /** Subscribes on a connection of its own, which is opened again when it breaks; messages in between are lost. */
  subscribe(channel: string, listener: (message: string) => void): Promise<() => Promise<void>>;
  /** Another port to the same server, for a command that blocks. Closing it ends a command that is under way. */
  duplicate(): Promise<RedisPort>;
  /** Every node there is: of a cluster masters and replicas, else the one server. */
  nodes(): Promise<readonly RedisNode[]>;
  /** Ends the port's own connections, never the caller's client. */
  close(): Promise<void>;
}

export interface PortOptions {
  readonly clock?: Clock | undefined;
  /** How long a command may wait for its answer; the connection of one that got none is given up. */
  readonly timeoutMs?: number | undefined;
}

export const SEND_TIMEOUT_MS = 10_000;
const RESUBSCRIBE_MS = 1_000;

/** From a client or a cluster of node-redis. The client's options are used, the client itself is left alone. */
export function fromNodeRedis(client: NodeRedisClient, options: PortOptions = {}): RedisPort {
  return createPort(nodeRedisDriver(client), options);
}

/** From a client or a cluster of ioredis. Its `keyPrefix` does not apply: the store has a prefix of its own. */
export function fromIoredis(client: IoredisClient, options: PortOptions = {}): RedisPort {
  return createPort(ioredisDriver(client), options);
}

interface Held {
  readonly wire: Wire;
  waiting: number;
  retired: boolean;
}

export function createPort(driver: Driver, options: PortOptions = {}): RedisPort {
  const clock = options.clock ?? systemClock;
  const timeoutMs = options.timeoutMs ?? SEND_TIMEOUT_MS;
  const open = new Set<Held>();
  const subscriptions = new Set<() => Promise<void>>();
  let current: Promise<Held> | undefined;
  let closed = false;

  const connect = (): Promise<Held> => {
    if (closed) throw new MakegoodError("closed", "The Redis port is closed.");
    current ??= (async () => {
      try {
        const wire = await inTime(clock, driver.connect(), timeoutMs, (late) => late.destroy());
        const held: Held = { wire, waiting: 0, retired: false };
        if (closed) wire.destroy();
        else open.add(held);
        wire.onEnd(() => retire(held));
        return held;
      } catch (error) {
        current = undefined;
        throw new MakegoodError("store_unavailable", `Redis cannot be reached (${errorText(error)})`, {}, error);
      }
    })();
    return current;
  };

  /** New commands take a new connection; those under way on this one may still be answered. */
  const retire = (held: Held): void => {
    if (!held.retired) current = undefined;
    held.retired = true;
    if (held.waiting > 0) return;
    open.delete(held);
    held.wire.destroy();
  };

  async function sendOnce(key: string | null, args: readonly RedisArgument[], ms: number): Promise<unknown> {
    const held = await connect();
    held.waiting++;
    let broken = false;
    try {
      return await inTime(clock, held.wire.send(key, args), ms);
    } catch (error) {
      if (replyCode(error) !== null) throw error;
      broken = true;
      throw lost(error, held.wire.unsent(error));
    } finally {
      held.waiting--;
      if (broken || held.retired) retire(held);
    }
  }

  async function send(key: string | null, args: readonly RedisArgument[], { timeoutMs: ownMs = timeoutMs }: SendOptions = {}) {
    const reused = current !== undefined;
    try {
      return await sendOnce(key, args, ownMs);
    } catch (error) {
      // The connection had gone before the command could be sent, so a new one may take it.
      if (!reused || !isMakegoodError(error) || error.code !== "store_unavailable") throw error;
      return sendOnce(key, args, ownMs);
    }
  }

  return {
    kind: driver.kind,
    cluster: driver.cluster,
    send,
    async subscribe(channel, listener) {
      if (closed) throw new MakegoodError("closed", "The Redis port is closed.");
      const end = await subscribeAlways(driver, clock, timeoutMs, channel, listener);
      if (closed) {
        await end();
        throw new MakegoodError("closed", "The Redis port is closed.");
      }
      subscriptions.add(end);
      return async () => {
        subscriptions.delete(end);
        await end();
      };
    },
    duplicate: async () => createPort(driver, options),
    async nodes() {
      const nodes = await (await connect()).wire.nodes();
      // The libraries themselves would wait for ever.
      return nodes.map((node) => ({ ...node, send: (args) => inTime(clock, node.send(args), timeoutMs) }));
    },
    async close() {
      closed = true;
      await current?.catch(() => {});
      await Promise.all([...subscriptions].map((end) => end()));
      for (const { wire } of open) wire.destroy();
      open.clear();
    },
  };
}

function lost(error: unknown, unsent: boolean): MakegoodError {
  const text = errorText(error);
  return unsent
    ? new MakegoodError("store_unavailable", `Redis cannot be used now (${text})`, {}, error)
    : new MakegoodError("outcome_unknown", `Redis did not answer (${text}); repeat with the same id`, {}, error);
}

/** Keeps one subscription alive: the first connection must succeed, later ones are tried until `end`. */
async function subscribeAlways(
  driver: Driver,
  clock: Clock,
  timeoutMs: number,
  channel: string,
  listener: (message: string) => void,
): Promise<() => Promise<void>> {
  let wire: Wire | undefined;
  let timer: Timer | undefined;
  let ended = false;
  const again = (): void => {
    wire = undefined;
    if (!ended) timer = clock.after(RESUBSCRIBE_MS, () => void start().catch(again), true);
  };
  const start = async (): Promise<void> => {
    const fresh = await inTime(clock, driver.connect(), timeoutMs, (late) => late.destroy());
    try {
      await inTime(clock, fresh.subscribe(channel, listener), timeoutMs);
    } catch (error) {
      fresh.destroy();
      throw error;
    }
    if (ended) return fresh.destroy();
    wire = fresh;
    fresh.onEnd(() => {
      if (wire !== fresh) return;
      fresh.destroy();
      again();
    });
  };
  try {
    await start();
  } catch (error) {
    throw lost(error, true);
  }
  return async () => {
    ended = true;
    timer?.cancel();
    wire?.destroy();
  };
}

/** `late`: what becomes of a result that comes after the deadline. */
function inTime<T>(clock: Clock, promise: Promise<T>, ms: number, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = clock.after(ms, () => {
      over = true;
      reject(new Error(`no answer within ${ms} ms`));
    });
    promise.then(
      (value) => {
        timer.cancel();
        if (over) late?.(value);
        else resolve(value);
      },
      (error) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
