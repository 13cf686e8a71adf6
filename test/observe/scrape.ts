/** A scrape, read: which metrics it declares, and each line's value. */

export interface Scrape {
  readonly text: string;
  /** Name → type, by the TYPE lines. */
  readonly types: ReadonlyMap<string, string>;
  /** Names that have at least one sample; a histogram's by its own name. */
  readonly sampled: ReadonlySet<string>;
  /** Of those, gauges, and counters and histograms that are above 0. */
  readonly counted: ReadonlySet<string>;
  /** The value of a line without its labels, or of exactly these; undefined: there is no such line. */
  value(name: string, labels?: string): number | undefined;
}

export function readScrape(text: string): Scrape {
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  const sampled = new Set<string>();
  const counted = new Set<string>();
  for (const line of text.split("\n")) {
    const [, declared, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (declared && type) types.set(declared, type);
    const [, name, labels = "", value] = /^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$/.exec(line) ?? [];
    if (!name) continue;
    values.set(name + labels, Number(value));
    const whose = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    sampled.add(whose);
    if (types.get(whose) === "gauge" || (Number(value) > 0 && !/_(bucket|sum)$/.test(name))) counted.add(whose);
  }
  return { text, types, sampled, counted, value: (name, labels = "") => values.get(name + labels) };
}

export async function scrape(base: string, headers: Record<string, string> = {}): Promise<Scrape> {
  const answer = await fetch(`${base}/metrics`, { headers });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return readScrape(await answer.text());
}
