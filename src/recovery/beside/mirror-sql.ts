/** MIRROR: which message here stands for which death of the primary. A row and its message are one write. */
import type { MessageView, NewMessage, Resolution } from "../../message/message.ts";
import type { Fence } from "../../platform/job.ts";
import type { Home, Inside } from "../../store/home.ts";
import { columns, int, intOrNull, text, textOrNull } from "../columns.ts";
import { type Page, paged } from "../pages.ts";

const MIRROR = columns({
  primaryId: text("r.primary_id::text"),
  messageId: text("r.message_id::text"),
  /** With which the dead letter died, when it was last seen to. */
  attempts: int("r.attempts"),
  /** Of the message here. Replayed: it was sent again, and its end is not known yet; null: it never died, or retention took it. */
  resolution: textOrNull<Resolution | "replayed">("(array['open', 'resolved', 'discarded', 'replayed'])[d.resolution + 1]"),
  revision: intOrNull("d.revision"),
});

export type Mirror = ReturnType<(typeof MIRROR)["of"]>;
export type Mirrors = ReturnType<typeof createMirrors>;

/** I10: so many rows of what retention took go in one call. */
const FORGOTTEN_MAX = 100_000;

/** A key that another message has here stays with that one: the primary forgot it before we did. */
async function enqueueAll(inside: Inside, messages: readonly NewMessage[]): Promise<void> {
  const accepted = await inside.tryEnqueue(messages, {});
  const isOurs = ({ id }: NewMessage, i: number) => accepted[i]?.id === id;
  if (messages.every(isOurs)) return;
  const keyless = messages.map((message, i) => (isOurs(message, i) ? message : { ...message, key: null, payloadHash: "" }));
  await enqueueAll(inside, keyless);
}

export function createMirrors(home: Home) {
  const { s } = home;
  const run = home.read("read what stands for dead letters of the primary");
  const write = home.write("note the death of a dead letter of the primary");
  const joined = `${s}.recovery_mirror r left join ${s}.dead_letter d on d.id = r.message_id`;
  const read = async (where: string, value: unknown) =>
    (await run(`select ${MIRROR.list} from ${joined} where ${where}`, [value])).map(MIRROR.of);

  return {
    /** By the primary's ids. */
    ofPrimary: async (ids: readonly string[]) =>
      new Map((await read("r.primary_id = any ($1::uuid[])", ids)).map((mirror) => [mirror.primaryId, mirror])),
    ofMessage: async (id: string) => (await read("r.message_id = $1::uuid", id))[0] ?? null,
    /** The primary's ids of those that are open here, in a stable order. */
    async open({ limit, cursor }: Page) {
      const page = "($1::uuid is null or r.primary_id > $1::uuid) order by r.primary_id limit $2::int + 1";
      const rows = await run(`select r.primary_id::text from ${joined} where d.resolution = 0 and ${page}`, [
        cursor ?? null,
        limit,
      ]);
      return paged(
        rows.map(([id]) => id as string),
        limit,
        (last) => last,
      );
    },
    openCount: async () => Number((await run(`select count(*)::text from ${joined} where d.resolution = 0`))[0]?.[0]),
    /** `copies`: the messages that stand for these dead letters, in their order. */
    add: (dead: readonly MessageView[], copies: readonly NewMessage[], under: Fence | null = null) => {
      const write = async (inside: Inside): Promise<void> => {
        const rows = await inside.run(
          `insert into ${s}.recovery_mirror (primary_id, message_id, attempts)
            select * from unnest($1::uuid[], $2::uuid[], $3::int[]) x order by 1 on conflict do nothing returning message_id::text`,
          [dead.map(({ id }) => id), copies.map(({ id }) => id), dead.map(({ attempts }) => attempts)],
        );
        const added = new Set(rows.map(([id]) => id));
        const missing = copies.filter(({ id }) => added.has(id));
        await enqueueAll(inside, missing);
      };
      return home.transaction("bring dead letters over", write, under);
    },
    /** The death that the message stands for from now on; also of a message that began here and went to the primary. */
    died: (primaryId: string, messageId: string, attempts: number) =>
      write(
        `insert into ${s}.recovery_mirror as r (primary_id, message_id, attempts) values ($1::uuid, $2::uuid, $3::int)
          on conflict (primary_id) do update set attempts = greatest(r.attempts, excluded.attempts)`,
        [primaryId, messageId, attempts],
      ),
    /** Of messages that retention took. */
    forget: (under: Fence | null = null) => {
      const text = `delete from ${s}.recovery_mirror where primary_id in (select r.primary_id from ${joined} where d.id is null limit ${FORGOTTEN_MAX})`;
      return home.transaction("forget dead letters of the primary", (inside) => inside.run(text), under);
    },
  };
}
