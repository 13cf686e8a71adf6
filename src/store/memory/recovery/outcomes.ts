/** What was learned, on three levels: outcomes that weigh less the older they are. */
import type { Learned, OutcomeCount } from "../../recovery-numbers.ts";
import { familyOf, rootOf } from "./groups.ts";
import { type Memory, type OutcomeRow, set } from "./records.ts";

type Level = OutcomeCount["level"];

const nameOf = (level: Level, scope: string, action: string): string => JSON.stringify([level, scope, action]);

/** Both together at the later of their times; weights fade and never grow. */
function added(a: OutcomeRow, b: OutcomeRow, halfLifeMs: number): OutcomeRow {
  const at = Math.max(a.at, b.at);
  const share = (row: OutcomeRow): number => 2 ** -((at - row.at) / halfLifeMs);
  const [one, other] = [share(a), share(b)];
  return {
    successes: a.successes * one + b.successes * other,
    failures: a.failures * one + b.failures * other,
    at,
  };
}

export function learn(memory: Memory, learned: readonly Learned[], halfLifeMs: number, now: number): void {
  for (const { groupId, action, healed, failed } of learned) {
    const group = rootOf(memory, groupId);
    if (!group || healed + failed === 0) continue;
    const scopes: [Level, string][] = [
      ["group", String(group.groupId)],
      ["topic", group.topic],
      ["all", ""],
    ];
    for (const [level, scope] of scopes) {
      const name = nameOf(level, scope, action);
      const more = { successes: healed, failures: failed, at: now };
      const known = memory.outcomes.get(name);
      set(memory, memory.outcomes, name, known ? added(known, more, halfLifeMs) : more);
    }
  }
}

const LEVELS: readonly Level[] = ["group", "topic", "all"];

/** By action, the nearest level first; what groups merged into this one had learned is added up. */
export function outcomesOf(memory: Memory, groupId: number, halfLifeMs: number): OutcomeCount[] {
  const group = rootOf(memory, groupId);
  if (!group) return [];
  const family = new Set(familyOf(memory, group.groupId).map(String));
  const fits: Record<Level, (scope: string) => boolean> = {
    group: (scope) => family.has(scope),
    topic: (scope) => scope === group.topic,
    all: () => true,
  };
  const found = new Map<string, OutcomeCount>();
  for (const [name, row] of memory.outcomes) {
    const [level, scope, action] = JSON.parse(name) as [Level, string, string];
    if (!fits[level](scope)) continue;
    const place = JSON.stringify([level, action]);
    const known = found.get(place);
    found.set(place, { action, level, ...(known ? added(known, row, halfLifeMs) : row) });
  }
  return [...found.values()].sort(byActionAndLevel);
}

export function outcomesOfAll(memory: Memory): OutcomeCount[] {
  const rows = [...memory.outcomes].map(([name, row]) => {
    const [level, , action] = JSON.parse(name) as [Level, string, string];
    return { action, level, ...row };
  });
  return rows.filter(({ level }) => level === "all").sort(byActionAndLevel);
}

function byActionAndLevel(a: OutcomeCount, b: OutcomeCount): number {
  if (a.action !== b.action) return a.action < b.action ? -1 : 1;
  return LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level);
}
