/** Who asks: a name, a person or a program, and what they may do. How that was learned goes on record with what they change. */

export const ROLES = ["viewer", "producer", "operator", "approver", "admin"] as const;
export type Role = (typeof ROLES)[number];

export type CallerKind = "human" | "agent";

/** A token, the code that calls the library, the program that mounts the API, or nobody who had to say. */
export type Via = "token" | "library" | "mount" | "anonymous";

export interface Caller {
  readonly name: string;
  readonly kind: CallerKind;
  readonly roles: readonly Role[];
  /** Payloads are seen only by those to whom it is granted, whatever their roles are. */
  readonly viewsPayload: boolean;
  /** Null: every tenant. */
  readonly tenants: readonly string[] | null;
  /** Patterns, of which a topic must fit one; null: every topic. */
  readonly topics: readonly string[] | null;
  readonly via: Via;
  /** The token it came with, null where there was none. */
  readonly tokenId: string | null;
}

/** A caller who may do everything: a token without a role, and the caller of an installation that needs none. */
export const unlimited = (name: string, via: Via, tokenId: string | null = null): Caller => ({
  ...{ name, kind: "human", roles: ["admin"], viewsPayload: true, tenants: null, topics: null },
  ...{ via, tokenId },
});
