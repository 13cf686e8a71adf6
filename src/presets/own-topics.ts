/**
 * Which topics are Makegood's own: declared by itself for its work, wherever it runs. Lists for people leave them out unless they are asked for.
 */
import { isRecoveryTopic } from "../recovery/topics.ts";
import { AUDIT_CLIENT_NAMESPACE, AUDIT_NAMESPACE, auditTopicNames } from "./audit/registry.ts";

const NAMESPACES = [AUDIT_NAMESPACE, AUDIT_CLIENT_NAMESPACE];

export function isOwnTopic(name: string): boolean {
  return isRecoveryTopic(name) || NAMESPACES.some((namespace) => auditTopicNames(namespace).includes(name));
}
