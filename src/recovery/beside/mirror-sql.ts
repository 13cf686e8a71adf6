/**
 * MIRROR: which message here stands for which dead letter of the primary, and for which of its deaths. A row and its message are one write,
 * so two processes that bring the same dead letter over make one of it.
 */
import type { NewMessage } from "../../message/message.ts";
import type { Home, Inside } from "../../store/home.ts";
import { columns, int, intOrNull, text } from "../columns.ts";

/** `resolution`: of the dead letter here; 3: it was sent again, and its end is not known yet. */
export const RESOLUTION = { open: 0, resolved: 1, discarded: 2, underWay: 3 } as const;

const MIRROR = columns({
  primaryId: text("r.primary_id::text"),
  messageId: text("r.message_id::text"),
  attempts: int("r.attempts"),
  resolution: intOrNull("d.resolution"),
});

export type Mirror = ReturnType<(typeof MIRROR)["of"]>;

/** A dead letter of the primary as a message that is dead here from the start. */
export interface NewMirror {
  readonly primaryId: string;
  readonly attempts: number;
  readonly message: NewMessage;
}

/** I10: so many rows of what retention took go in one call. */
const FORGOTTEN_MAX = 10_000;

/** A key that another message has here stays with that one: the primary forgot it before we did. */
async function enqueueAll(inside: Inside, messages: readonly NewMessage[]): Promise<void> {
  for (let rest = messages; rest.length > 0; ) {
    const accepted = await inside.tryEnqueue(rest, {});
    const isTaken = (_: NewMessage, i: number) => accepted[i]?.id !== rest[i]?.id;
    const nothing = accepted.some(({ kind }) => kind === "conflict");
    const keyless = rest.map((message, i) => (isTaken(message, i) ? { ...message, key: null, payloadHash: "" } : message));
    if (!rest.some(isTaken)) return;
    rest = nothing ? keyless : keyless.filter((_, i) => isTaken(_, i));
  }
}

export function createMirrors(home: Home) {
  const { s } = home;
  const run = home.read("read what stands for dead letters of the primary");
  const from = `select ${MIRROR.list} from ${s}.recovery_mirror r left join ${s}.dead_letter d on d.id = r.message_id`;
  const write = home.write("note the death of a dead letter of the primary");

  return {
    /** By the primary's ids. */
    async ofPrimary(ids: readonly string[]): Promise<Map<string, Mirror>> {
      const rows = await run(`${from} where r.primary_id = any ($1::uuid[])`, [ids]);
      return new Map(rows.map((row) => MIRROR.of(row)).map((mirror) => [mirror.primaryId, mirror]));
    },
    async ofMessage(id: string): Promise<Mirror | null> {
      const [row] = await run(`${from} where r.message_id = $1::uuid`, [id]);
      return row ? MIRROR.of(row) : null;
    },
    /** Those that are open here, in a stable order. */
    async open(after: string | null, limit: number): Promise<Mirror[]> {
      const text = `${from} where d.resolution = 0 and ($1::uuid is null or r.primary_id > $1::uuid) order by r.primary_id limit $2::int`;
      return (await run(text, [after, limit])).map((row) => MIRROR.of(row));
    },
    async openCount(): Promise<number> {
      const text = `select count(*)::text from ${s}.recovery_mirror r join ${s}.dead_letter d on d.id = r.message_id where d.resolution = 0`;
      return Number((await run(text))[0]?.[0]);
    },
    add: (mirrors: readonly NewMirror[]) =>
      home.transaction("bring dead letters over", async (inside) => {
        const rows = await inside.run(
          `insert into ${s}.recovery_mirror (primary_id, message_id, attempts)
            select * from unnest($1::uuid[], $2::uuid[], $3::int[]) x order by 1 on conflict do nothing returning primary_id::text`,
          [
            mirrors.map(({ primaryId }) => primaryId),
            mirrors.map(({ message }) => message.id),
            mirrors.map(({ attempts }) => attempts),
          ],
        );
        const added = new Set(rows.map(([id]) => id));
        await enqueueAll(
          inside,
          mirrors.flatMap(({ primaryId, message }) => (added.has(primaryId) ? [message] : [])),
        );
        return added.size;
      }),
    /** The death that the message stands for from now on; also of a message that began here and went to the primary. */
    died: (primaryId: string, messageId: string, attempts: number) =>
      write(
        `insert into ${s}.recovery_mirror as r (primary_id, message_id, attempts) values ($1::uuid, $2::uuid, $3::int)
          on conflict (primary_id) do update set attempts = greatest(r.attempts, excluded.attempts)`,
        [primaryId, messageId, attempts],
      ),
    /** Of messages that retention took. */
    forget: () =>
      write(
        `delete from ${s}.recovery_mirror r where r.primary_id in (select r.primary_id from ${s}.recovery_mirror r
          where not exists (select from ${s}.dead_letter d where d.id = r.message_id) limit ${FORGOTTEN_MAX})`,
      ),
  };
}

export type Mirrors = ReturnType<typeof createMirrors>;
