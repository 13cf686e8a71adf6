/**
 * Which topics are Makegood's own: declared by itself for its work, wherever it runs. Lists for people leave them out unless they are asked for.
 */
import { isRecoveryTopic } from "../recovery/topics.ts";
import { AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, auditTopicNames } from "./audit/registry.ts";

const AUDIT = new Set([AUDIT_NAMESPACE, AUDIT_CLIENT_NAMESPACE].flatMap(auditTopicNames));

export function isOwnTopic(name: string): boolean {
  return isRecoveryTopic(name) || AUDIT.has(name);
}
