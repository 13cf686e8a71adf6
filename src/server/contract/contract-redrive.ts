/**
 * Redrives and their items as JSON: what was asked for, how far it is, and why it stands as it does.
 */
import type { Redrive, RedriveItem } from "../../store/redrive.ts";
import { instant, parsedText } from "./contract-group.ts";

export interface RedriveJson {
  readonly redrive_id: string;
  readonly status: Redrive["status"];
  readonly status_reason: string | null;
  readonly mode: Redrive["mode"];
  readonly reason: string;
  readonly actor: string;
  readonly action: string | null;
  readonly candidate_id: number | null;
  readonly idempotency_key: string | null;
  readonly select: Readonly<Record<string, unknown>>;
  readonly plan: unknown;
  readonly counts: Redrive["counts"];
  /** The share of the list whose fate is known, 0 to 1. */
  readonly progress: number;
  readonly version: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
}

export interface RedriveItemJson {
  readonly n: number;
  readonly message_id: string;
  readonly generation: number;
  readonly revision: number;
  readonly group_id: number | null;
  readonly state: RedriveItem["state"];
  readonly reason: string | null;
  readonly carrier_id: string | null;
  readonly sent_at: string | null;
  readonly ended_at: string | null;
}

export function redriveJson(redrive: Redrive): RedriveJson {
  const { select, counts } = redrive;
  const known = counts.healed + counts.failed + counts.skipped;
  return {
    redrive_id: redrive.id,
    status: redrive.status,
    status_reason: redrive.statusReason,
    mode: redrive.mode,
    reason: redrive.reason,
    actor: redrive.actor,
    action: redrive.action,
    candidate_id: redrive.candidateId,
    idempotency_key: redrive.requestKey,
    select: {
      group_id: select.groupId ?? null,
      topic: select.topic ?? null,
      tenant_id: select.tenantId ?? null,
      error_code: select.code ?? null,
      ids_given: select.idsGiven ?? null,
      limit: select.limit,
      generation_max: select.generationMax,
    },
    plan: snakeMembers(parsedText(redrive.plan)),
    counts,
    progress: counts.selected === 0 ? 1 : known / counts.selected,
    version: redrive.version,
    created_at: redrive.createdAt.toISOString(),
    started_at: instant(redrive.startedAt),
    ended_at: instant(redrive.endedAt),
  };
}

export function itemJson(item: RedriveItem): RedriveItemJson {
  return {
    n: item.n,
    message_id: item.messageId,
    generation: item.generation,
    revision: item.revision,
    group_id: item.groupId,
    state: item.state,
    reason: item.reason,
    carrier_id: item.carrierId,
    sent_at: instant(item.sentAt),
    ended_at: instant(item.endedAt),
  };
}

/** The plan is kept in our own words; outside they are snake_case. */
function snakeMembers(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), member]));
}
