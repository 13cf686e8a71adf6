/**
 * What the port asks of a client library: to connect, to send, to listen, to end. A wire never connects again by itself and
 * never repeats a command: the port decides what becomes of a connection that broke.
 */

export type RedisArgument = string | Buffer;

export interface RedisNode {
  /** `host:port`, or empty where the library does not say. */
  readonly name: string;
  readonly role: "master" | "replica";
  send(args: readonly RedisArgument[]): Promise<unknown>;
}

export interface Wire {
  send(key: string | null, args: readonly RedisArgument[]): Promise<unknown>;
  /** Turns the wire into a listener; nothing else is sent on it afterwards. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  nodes(): readonly RedisNode[] | Promise<readonly RedisNode[]>;
  /** Whether this error says that the command never left this process. */
  unsent(error: unknown): boolean;
  /** Called once, when the connection is gone. */
  onEnd(ended: () => void): void;
  destroy(): void;
}

export interface Driver {
  readonly kind: "node-redis" | "ioredis";
  readonly cluster: boolean;
  connect(): Promise<Wire>;
}
