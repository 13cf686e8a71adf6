/**
 * BREAKERS in PostgreSQL: columns of the topic's row, so that its lock decides who opens and who probes. Tenants that are held alone
 * stand in the same row, with their reasons.
 */
import { LIMITS } from "../../message/limits.ts";
import { BREAKER_CLOSED, type TopicRecord } from "../../message/topic.ts";
import { clockSql } from "../shared/clock-sql.ts";
import type { TopicStore } from "../topics.ts";
import type { Row } from "./connection.ts";
import type { Db } from "./db.ts";

type Change = (text: string, values: unknown[]) => Promise<readonly Row[]>;
type Read = (name: string, now?: Date) => Promise<TopicRecord[]>;

export function createBreakers({ connection, s }: Db, change: Change, read: Read): Pick<TopicStore, "trip" | "probe" | "reset"> {
  const holdSql = (clock: string) => `update ${s}.topic set held_tenants = held_tenants || jsonb_build_object($2::text, $3::text),
      probe_until = greatest(probe_until, ${clock} + $4::bigint * interval '1 ms')
    where name = $1 and breaker_state = 0 and not jsonb_exists(held_tenants, $2)
      and (select count(*) from jsonb_object_keys(held_tenants)) < ${LIMITS.heldTenantsMax} returning 1`;
  const openSql = (
    clock: string,
  ) => `update ${s}.topic set breaker_state = 1, breaker_until = greatest(${clock} + $2::bigint * interval '1 ms', case when $4::boolean and breaker_state = 1 then breaker_until end),
      breaker_trips = breaker_trips + 1, breaker_reason = $3, probe_owner = null, probe_until = null, held_tenants = '{}'
    where name = $1 and case when $4::boolean then true else case breaker_state when 0 then true when 1 then breaker_until <= ${clock}
      else probe_until <= ${clock} or probe_until < ${clock} + $2::bigint * interval '1 ms' end end returning 1`;

  return {
    async trip(name, cooldownMs, reason, of) {
      const { tenantId = null, now, byHand = false } = of ?? {};
      const shortened = reason.slice(0, LIMITS.heldReasonCharsMax);
      const held =
        tenantId !== null && (await change(holdSql(clockSql(now)), [name, tenantId, shortened, cooldownMs])).length > 0;
      const before = held || tenantId === null ? null : (await read(name, now))[0]?.breaker;
      const covered = before && (before.state !== "closed" || before.tenants.some((one) => one.tenantId === tenantId));
      if (!held && !covered) await change(openSql(clockSql(now)), [name, cooldownMs, reason, byHand]);
      return (await read(name, now))[0]?.breaker ?? BREAKER_CLOSED;
    },
    async probe(name, owner, leaseMs, of) {
      const clock = clockSql(of?.now);
      const rows = await connection.rows(
        "probe a breaker",
        `update ${s}.topic set breaker_state = case breaker_state when 0 then 0 else 2 end, probe_owner = $2,
          probe_until = ${clock} + $3::bigint * interval '1 ms',
          rest_until = case when $5::bigint is null then rest_until else ${clock} + $5::bigint * interval '1 ms' end,
          breaker_trips = breaker_trips + case when $5::bigint is null then 0 else 1 end
        where name = $1 and case when $4::text is null then breaker_state <> 0 else breaker_state = 0 and jsonb_exists(held_tenants, $4) end
          and (breaker_state <> 1 or breaker_until <= ${clock}) and (breaker_state = 1 or probe_until is null or probe_until <= ${clock})
          and ($5::bigint is null or rest_until is null or rest_until <= ${clock}) returning 1`,
        [name, owner, leaseMs, of?.tenantId ?? null, of?.restMs ?? null],
      );
      return rows.length > 0;
    },
    async reset(name, of) {
      const tenantId = of?.tenantId ?? null;
      if (tenantId === null) {
        await change(
          `update ${s}.topic set breaker_state = 0, breaker_until = null, breaker_trips = 0, breaker_reason = null, probe_owner = null, probe_until = null,
            rest_until = null, held_tenants = '{}'
          where name = $1 and (breaker_state <> 0 or held_tenants <> '{}')`,
          [name],
        );
        return;
      }
      const rest = "breaker_state = 0 and held_tenants - $2::text = '{}'";
      await change(
        `update ${s}.topic set held_tenants = held_tenants - $2::text, breaker_trips = case when ${rest} then 0 else breaker_trips end,
          probe_until = case when ${rest} then null else probe_until end, rest_until = case when ${rest} then null else rest_until end
        where name = $1 and jsonb_exists(held_tenants, $2)`,
        [name, tenantId],
      );
    },
  };
}
