/**
 * Probes and metrics of a process that serves no API: a worker, or a producer in the caller's own program. `/livez`, `/readyz` and `/metrics`
 * on a port of their own, as `serve` has them, and nothing else.
 */
import type { Makegood } from "../create.ts";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { createApp } from "./app.ts";
import { isLoopbackHost, parseTokens, type Token } from "./auth.ts";
import { problem } from "./http.ts";
import { kernelOf, PROBE_MS } from "./kernel.ts";
import { listen } from "./listen.ts";

export interface ProbesOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Loopback unless said; any other address needs tokens, because metrics tell the names of topics. */
  readonly host?: string | undefined;
  /** As MAKEGOOD_TOKENS has them. Whether it lives and is ready anyone may ask. */
  readonly tokens?: string | readonly Token[] | undefined;
  /** Names under which it is asked, beside its address. */
  readonly hosts?: readonly string[] | undefined;
  /** True: not ready any more, because the program stops. */
  readonly draining?: (() => boolean) | undefined;
}

export interface Probes extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The Makegood goes on. Idempotent. */
  close(): Promise<void>;
}

const PATHS: readonly string[] = ["/livez", "/readyz", "/metrics"];
const NOT_HERE = problem("not_found", `only ${PATHS.join(", ")} are answered on this port`);
/** A scrape that is under way when it closes. */
const CLOSE_MS = 1_000;

export async function startProbes(mg: Makegood, options: ProbesOptions): Promise<Probes> {
  const { port, host = "127.0.0.1", hosts: names = [], draining = () => false } = options;
  const tokens = tokensOf(options.tokens);
  if (!isLoopbackHost(host) && tokens.length === 0) {
    const remedy = "give tokens (MAKEGOOD_TOKENS), or bind to 127.0.0.1";
    throw new MakegoodError("invalid_config", `probes on ${host} would show metrics to everybody: ${remedy}`);
  }
  const kernel = kernelOf({ config: { payload_bytes_max: LIMITS.payloadBytesMax, sink_allow: [] }, mg, draining });
  const app = createApp({ kernel, tokens, anonymous: "probe", hosts: { bound: host, names } });
  const reply: typeof app.reply = (request) => app.reply(request, PATHS.includes(request.path) ? undefined : NOT_HERE);
  const release = mg.watch.often(PROBE_MS);
  const listening = await listen(reply, host, port, mg.clock, { variables: "MAKEGOOD_PROBE_" }).catch((error: unknown) => {
    release();
    app.close();
    throw error;
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    release();
    app.close();
    closing ??= listening.close(CLOSE_MS);
    return closing;
  };
  return { url: listening.url, port: listening.port, close, [Symbol.asyncDispose]: close };
}

function tokensOf(given: ProbesOptions["tokens"] = []): readonly Token[] {
  if (typeof given !== "string") return given;
  const { tokens, faults } = parseTokens(given);
  if (faults.length > 0) throw new MakegoodError("invalid_config", `tokens: ${faults.join("; ")}`);
  return tokens;
}
