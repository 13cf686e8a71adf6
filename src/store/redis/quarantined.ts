/**
 * The messages that the store's scripts quarantine because they cannot be read (another client deleted or overwrote a key), each
 * with its name where the table of keys still knows it, and with what is left of it. A person has to find out what it was (DF-1,
 * DF-21); it never expires.
 */
import type { Db } from "./db.ts";

export interface QuarantinedMessage {
  readonly id: string;
  /** gone: there is nothing left. unreadable: it is of another type. */
  readonly kind: "gone" | "unreadable";
  readonly at: Date;
  readonly topic: string | null;
  readonly tenantId: string | null;
  readonly key: string | null;
  readonly left: Readonly<Record<string, string>>;
}

type Named = Pick<QuarantinedMessage, "topic" | "tenantId" | "key">;
const NAMELESS: Named = { topic: null, tenantId: null, key: null };
const SHOWN_MAX = 1_000;
const VALUE_BYTES_MAX = 65_535;

export function createQuarantined(db: Db): () => Promise<QuarantinedMessage[]> {
  const names = new Map<string, Named>();
  const read = (key: string, ...args: string[]) => db.command("read the quarantine", key, args);

  /** Their names, from the table of keys: one walk for all that are new. */
  async function learn(ids: readonly string[]): Promise<void> {
    const wanted = new Set(ids.filter((id) => !names.has(id)));
    const dedupe = db.keys.key("dedupe");
    for (let cursor = ""; wanted.size > 0 && cursor !== "0"; ) {
      const [next, flat] = (await read(dedupe, "HSCAN", dedupe, cursor || "0", "COUNT", "1000")) as [string, string[]];
      cursor = next;
      for (let at = 0; at + 1 < flat.length; at += 2) {
        if (!wanted.delete(flat[at + 1] as string)) continue;
        const [topic = "", tenant = "", key = ""] = (flat[at] as string).split("\u0000");
        names.set(flat[at + 1] as string, { topic, tenantId: tenant || null, key });
      }
    }
    for (const id of wanted) names.set(id, NAMELESS);
  }

  async function leftOf(id: string): Promise<Record<string, string>> {
    const key = db.keys.message(id);
    const type = String(await read(key, "TYPE", key));
    if (type === "none") return {};
    if (type === "string") return { value: String(await read(key, "GETRANGE", key, "0", String(VALUE_BYTES_MAX))) };
    if (type !== "hash") return { redis_type: type };
    const flat = (await read(key, "HGETALL", key)) as string[];
    return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1] ?? ""]] : [])));
  }

  return async () => {
    const set = db.keys.key("quarantine");
    const flat = ((await read(set, "ZRANGE", set, "0", String(SHOWN_MAX - 1), "WITHSCORES")) as unknown[]).flat().map(String);
    const members = flat.flatMap((id, i) => (i % 2 === 0 ? [{ id, at: new Date(Number(flat[i + 1])) }] : []));
    await learn(members.map(({ id }) => id));
    return Promise.all(
      members.map(async ({ id, at }): Promise<QuarantinedMessage> => {
        const left = await leftOf(id);
        return { id, kind: Object.keys(left).length === 0 ? "gone" : "unreadable", at, ...(names.get(id) ?? NAMELESS), left };
      }),
    );
  };
}
