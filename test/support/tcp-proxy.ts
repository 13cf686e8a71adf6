/**
 * A TCP proxy to put between us and a server: latency, reset, silence per direction, and the cuts that matter most for a
 * COMMIT: before the request gets there, or after the server has done it and before its reply comes back.
 */
import { connect, createServer, type Socket } from "node:net";

export type Direction = "request" | "reply";

export interface Rule {
  /** What the request has to contain; looked for across packets. */
  readonly match: RegExp;
  /**
   * `lose-request`: the matching packet never reaches the server and the connection is reset.
   * `lose-reply`: the server gets it and answers in full, then the connection is reset instead of passing the answer on.
   * `swallow-reply`: likewise, but the connection stays open and silent, as after a cut cable.
   */
  readonly act: "lose-request" | "lose-reply" | "swallow-reply";
  /** How often it strikes; 1 unless told. */
  readonly times?: number;
  /** Whether it strikes this time, asked whenever it could; always unless told. */
  readonly chance?: () => boolean;
  /** What a whole answer contains; PostgreSQL's ReadyForQuery unless told. */
  readonly answered?: string;
}

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** The same URL by way of the proxy. */
  via(url: string): string;
  /** Adds a rule; `struck` resolves when it struck for the first time. */
  rule(rule: Rule): { readonly struck: Promise<void>; readonly count: () => number };
  latency(ms: number): void;
  /** From now on nothing passes in these directions. Connections that lost bytes stay silent for ever, also after heal(). */
  silence(...directions: Direction[]): void;
  /** New connections are reset. */
  refuse(): void;
  heal(): void;
  /** Resets every connection there is. */
  resetAll(): void;
  readonly connections: number;
}

/** 'Z', length 5: the server has finished, and committed what stood outside a transaction. */
const READY_FOR_QUERY = "Z\0\0\0\u0005";
const TAIL_BYTES = 4_096;

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Lost bytes: a stream with a hole is of no use to anybody. */
  dead: boolean;
  tail: string;
  waiting: { rule: Rule; fired: () => void; reply: string } | undefined;
}

interface ArmedRule {
  readonly rule: Rule;
  left: number;
  count: number;
  fired: () => void;
}

export async function startProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const links = new Set<Link>();
  const rules: ArmedRule[] = [];
  const silent = new Set<Direction>();
  let latencyMs = 0;
  let refusing = false;

  const reset = (link: Link) => {
    links.delete(link);
    link.client.resetAndDestroy();
    link.server.resetAndDestroy();
  };
  const pass = (link: Link, to: Socket, bytes: Buffer) => {
    const write = () => {
      if (!to.destroyed && !link.dead) to.write(bytes);
    };
    if (latencyMs > 0) setTimeout(write, latencyMs);
    else write();
  };

  function request(link: Link, bytes: Buffer): void {
    if (link.dead || silent.has("request")) {
      link.dead = true;
      return;
    }
    link.tail = (link.tail + bytes.toString("latin1")).slice(-TAIL_BYTES - bytes.length);
    const armed = rules.find(({ rule, left }) => left > 0 && rule.match.test(link.tail) && (rule.chance?.() ?? true));
    if (armed) {
      armed.left--;
      armed.count++;
      link.tail = "";
      if (armed.rule.act === "lose-request") {
        armed.fired();
        reset(link);
        return;
      }
      link.waiting = { rule: armed.rule, fired: armed.fired, reply: "" };
    }
    pass(link, link.server, bytes);
    link.tail = link.tail.slice(-TAIL_BYTES);
  }

  function reply(link: Link, bytes: Buffer): void {
    if (link.dead || silent.has("reply")) {
      link.dead = true;
      return;
    }
    const { waiting } = link;
    if (!waiting) {
      pass(link, link.client, bytes);
      return;
    }
    waiting.reply += bytes.toString("latin1");
    if (!waiting.reply.includes(waiting.rule.answered ?? READY_FOR_QUERY)) return;
    waiting.fired();
    if (waiting.rule.act === "lose-reply") reset(link);
    else link.dead = true;
  }

  const server = createServer((client) => {
    client.on("error", () => undefined);
    if (refusing) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target);
    const link: Link = { client, server: upstream, dead: false, tail: "", waiting: undefined };
    links.add(link);
    upstream.on("error", () => reset(link));
    client.on("data", (bytes: Buffer) => request(link, bytes));
    upstream.on("data", (bytes: Buffer) => reply(link, bytes));
    // What one side ends the other side hears of, unless the cable is cut.
    client.on("close", () => {
      links.delete(link);
      upstream.destroy();
    });
    upstream.on("end", () => {
      if (!link.dead && !silent.has("reply")) setTimeout(() => client.end(), latencyMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };

  return {
    port,
    via(url) {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(port);
      return changed.href;
    },
    rule(rule) {
      let fired: () => void = () => undefined;
      const struck = new Promise<void>((resolve) => {
        fired = resolve;
      });
      const armed: ArmedRule = { rule, left: rule.times ?? 1, count: 0, fired };
      rules.push(armed);
      return { struck, count: () => armed.count };
    },
    latency(ms) {
      latencyMs = ms;
    },
    silence(...directions) {
      for (const direction of directions) silent.add(direction);
    },
    refuse() {
      refusing = true;
    },
    heal() {
      silent.clear();
      refusing = false;
    },
    resetAll() {
      for (const link of links) reset(link);
    },
    get connections() {
      return links.size;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const link of links) reset(link);
      await closed;
    },
  };
}

/** The host and port of a URL, as the proxy's target. */
export function targetOf(url: string): { host: string; port: number } {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname, port: Number(port) || (protocol === "https:" ? 443 : protocol === "http:" ? 80 : 5432) };
}
