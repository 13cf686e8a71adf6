/**
 * Resolve a group because it is mended, in a version or for good. Its open dead letters are left where they are, or resolved with it, some at
 * a time: asked for again after its process was killed, it does what was left to do.
 */
import type { Records } from "../records.ts";
import type { ResolveRequest } from "../recovery.ts";
import { changedGroup } from "./changed.ts";
import type { Group } from "./group.ts";

const AT_ONCE = 500;

export async function resolveGroup(
  recovery: Pick<Records, "resolveGroup" | "resolveLetters" | "group">,
  groupId: number,
  { actor, actorType, reason, inVersion, messages = "leave" }: ResolveRequest,
): Promise<Group> {
  const by = { actor, actorType };
  const resolved = changedGroup(await recovery.resolveGroup({ groupId, inVersion: inVersion ?? null, reason, by }));
  if (messages === "leave") return resolved;
  // I10: what dies meanwhile is not part of it.
  for (let left = resolved.openMessages; left > 0; left -= AT_ONCE) {
    if ((await recovery.resolveLetters(groupId, Math.min(left, AT_ONCE), { actor, reason })) === 0) break;
  }
  return (await recovery.group(groupId)) ?? resolved;
}
