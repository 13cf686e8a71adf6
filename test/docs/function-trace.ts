/**
 * Which functions of src ran in which step: V8 counts every call, and at each step's border the counts since the last border
 * are read and put down to the step that ends there. Reading is synchronous, so a border is exact.
 */
import { Session } from "node:inspector";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** File → names of the functions in it that were called. Functions without a name do not count, nor do constructors. */
export type Ran = Map<string, Set<string>>;

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly functionName: string; readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

export class FunctionTrace {
  readonly steps = new Map<string, Ran>();
  readonly #session = new Session();
  #step: string | null = null;

  start(): void {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /** What ran until now belongs to the step before; what runs from now on belongs to this one. Null: to none. */
  enter(step: string | null): void {
    const counted = this.#take();
    if (this.#step !== null) this.#add(this.#step, counted);
    this.#step = step;
  }

  stop(): void {
    this.enter(null);
    this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  #take(): Coverage {
    let taken: Coverage = { result: [] };
    this.#session.post("Profiler.takePreciseCoverage", (error, coverage) => {
      if (error) throw error;
      taken = coverage;
    });
    return taken;
  }

  #add(step: string, { result }: Coverage): void {
    const ran: Ran = this.steps.get(step) ?? new Map();
    this.steps.set(step, ran);
    for (const { url, functions } of result) {
      const path = url.startsWith("file:") ? fileURLToPath(url) : url;
      if (!path.startsWith(`${ROOT}src/`)) continue;
      const called = functions.filter(({ functionName, ranges }) => /^[#a-z]/.test(functionName) && (ranges[0]?.count ?? 0) > 0);
      if (called.length === 0) continue;
      const file = path.slice(ROOT.length);
      const names = ran.get(file) ?? new Set();
      ran.set(file, names);
      for (const { functionName } of called) names.add(functionName);
    }
  }
}
