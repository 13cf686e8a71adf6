/**
 * The mark of what a preview saw, as text: where its engine stood, the group as it was, and the last death where a limit cut the rest off.
 * Pure; the engines make marks and understand each their own.
 */
import { MakegoodError } from "../../message/errors.ts";

export interface SeenMark {
  /** What the engine had written by then, in its own words, without a semicolon. */
  readonly position: string;
  /** The group that was asked for (the one it was merged into, if it was); another version: it is not the same any more. */
  readonly group: { readonly id: number; readonly version: number } | null;
  /** The last one of the list; what died after it was cut off. In whole microseconds since the epoch. */
  readonly last: { readonly diedUs: string; readonly id: string } | null;
}

const CHARS_MAX = 65_536;
const SHAPE = /^([^;]+)(?:;g(\d{1,15})\.(\d{1,9}))?(?:;d(\d{1,18})\.([0-9a-f-]{36}))?$/;

export function seenText({ position, group, last }: SeenMark): string {
  return `${position}${group ? `;g${group.id}.${group.version}` : ""}${last ? `;d${last.diedUs}.${last.id}` : ""}`;
}

/** `isPosition`: whether the engine could have written it. */
export function readSeen(text: string, isPosition: (position: string) => boolean): SeenMark {
  const [, position, group, version, diedUs, id] = (text.length <= CHARS_MAX && SHAPE.exec(text)) || [];
  if (position === undefined || !isPosition(position)) {
    const detail = "is not a mark of ours: pass `seen` of the preview as it was, or leave it out";
    throw new MakegoodError("invalid_request", `seen ${detail}`, { errors: [{ field: "seen", detail }] });
  }
  return {
    position,
    group: group === undefined ? null : { id: Number(group), version: Number(version) },
    last: diedUs === undefined ? null : { diedUs, id: id as string },
  };
}
