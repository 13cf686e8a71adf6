import type { AddressGuard } from "./address-guard.ts";
export declare function checkUrl(text: unknown, guard: AddressGuard): string | null;
/** Takes anything: what is saved comes from outside, whatever its type says. */
export declare function checkHeaders(headers: unknown): string | null;
