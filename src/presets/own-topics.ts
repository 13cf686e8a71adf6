/**
 * Which topics are Makegood's own: declared by itself for its work, wherever it runs. Lists for people leave them out unless they are asked for.
 */
import { isRecoveryTopic } from "../recovery/topics.ts";
import { AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, AUDIT_TYPES, QUARANTINE } from "./audit/registry.ts";

const TYPES = [...AUDIT_TYPES.map(({ type }) => type), QUARANTINE];
const AUDIT = new Set(
  [AUDIT_NAMESPACE, AUDIT_CLIENT_NAMESPACE].flatMap((namespace) => TYPES.map((type) => `${namespace}/${type}`)),
);

export function isOwnTopic(name: string): boolean {
  return isRecoveryTopic(name) || AUDIT.has(name);
}
