/**
 * Checklists over what doctor finds, each item passed or failed: before billing is activated in a shadow deployment (FIN-6), and before,
 * during and after the deployment of recovery (REC-45). What a program cannot see is left to a person, with the command that shows it.
 */
import type { Config } from "../server/config/config.ts";
import { type Examined, examined } from "../store/shared/examined.ts";

interface Item {
  readonly item: string;
  /** Checks that must have been made and be well; none: a person looks. */
  readonly needs: readonly string[];
  readonly command: string;
  /** Where it is absent, the item has nothing to hold. */
  readonly when?: (config: Config) => boolean;
}

const AOF = ["appendonly", "appendfsync", "append-only-file"];
const onRedis = (config: Config): boolean => config.redis_url !== null;
const onPostgres = (config: Config): boolean => config.store === "postgres";
const CHECK = "makegood check-redis --strict";

export const PROFILES: Readonly<Record<string, readonly Item[]>> = {
  shadow: [
    { item: "Redis answers", needs: ["redis"], command: CHECK },
    { item: "its append-only file is on, synced and written", needs: AOF, command: CHECK },
    { item: "it evicts nothing", needs: ["maxmemory-policy"], command: CHECK },
    { item: "its memory has a bound", needs: ["maxmemory"], command: CHECK },
    { item: "the clocks agree", needs: ["clock"], command: "timedatectl" },
  ],
  pre: [
    { item: "Redis persists and is written", needs: AOF, command: CHECK, when: onRedis },
    { item: "Redis evicts nothing", needs: ["maxmemory-policy"], command: CHECK, when: onRedis },
    {
      item: "PostgreSQL survives a power loss",
      needs: ["fsync", "synchronous_commit", "full_page_writes"],
      command: "makegood doctor",
      when: onPostgres,
    },
    {
      item: "the schema is migrated and as made",
      needs: ["schema", "drift", "indexes"],
      command: "makegood migrate status",
      when: onPostgres,
    },
    { item: "secrets are closed to other users", needs: ["secrets"], command: "makegood doctor" },
  ],
  deploy: [
    { item: "the new version answers", needs: ["server", "version"], command: "makegood doctor" },
    { item: "it is ready", needs: ["ready"], command: "curl $MAKEGOOD_URL/readyz?verbose" },
    { item: "metrics are there", needs: ["metrics"], command: "curl $MAKEGOOD_URL/metrics" },
    { item: "timers: what must run by itself does", needs: ["jobs"], command: "makegood jobs list" },
  ],
  post: [
    { item: "nothing is wrong with it", needs: ["health"], command: "curl $MAKEGOOD_URL/health" },
    { item: "metrics are there", needs: ["metrics"], command: "curl $MAKEGOOD_URL/metrics" },
    {
      item: "chaos in staging: kill a worker, stop Redis, stop PostgreSQL; nothing is lost",
      needs: [],
      command: "docs/guide/operations.md",
    },
    { item: "reconcile: all that was accepted is accounted for", needs: ["conservation"], command: "makegood verify" },
    // Plain views (0008-recovery-views.ts) have nothing to refresh.
    { item: "refresh of mv_top_pending", needs: [], command: "select * from mv_top_pending", when: () => false },
    { item: "dashboard and alerts are loaded", needs: [], command: "deploy/grafana, deploy/alerts" },
  ],
};

/** On a cluster a check has the name of its node, too. */
const isOf = (name: string, need: string): boolean => name === need || name.startsWith(`${need} `);

export function hold(items: readonly Item[], found: readonly Examined[], config: Config): Examined[] {
  return items.map(({ item, needs, command, when }) => {
    if (when?.(config) === false) return examined(item, true, "not used here");
    if (needs.length === 0) return examined(item, false, `see for yourself: ${command}`, "warn");
    const looked = needs.flatMap((need) => {
      const those = found.filter(({ name }) => isOf(name, need));
      return those.length > 0 ? those : [examined(need, false, "was not looked at")];
    });
    const wrong = looked.filter(({ status }) => status !== "ok").map(({ name, detail }) => `${name}: ${detail}`);
    return examined(item, wrong.length === 0, wrong.length === 0 ? command : `${wrong.join("; ")} (${command})`);
  });
}
