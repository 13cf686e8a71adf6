import { type Reply } from "./problem.ts";
export interface Token {
    readonly name: string;
    readonly digest: Buffer;
}
export declare const TOKEN_BYTES_MIN = 16;
/** `name:secret,name2:secret2`, also one a line. Every fault is reported, none with a secret in it. */
export declare function parseTokens(text: string): {
    tokens: Token[];
    faults: string[];
};
/** The actor, or null. Every entry is compared, so that the time taken says nothing about which one was near. */
export declare function actorOf(authorization: string | null, tokens: readonly Token[]): string | null;
export declare function isLoopbackHost(host: string): boolean;
export interface HostRule {
    /** The address we are bound to. */
    readonly bound: string;
    /** MAKEGOOD_HOSTS: names a proxy or a DNS record uses for us. */
    readonly names: readonly string[];
}
export declare function isAllowedHost(header: string | null, rule: HostRule): boolean;
/** A refusal for a request that changes something on behalf of a page of another origin. */
export declare function crossOrigin(header: (name: string) => string | null): Reply | null;
