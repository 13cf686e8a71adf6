import { type LookupFunction } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { buildConnector } from "undici";
export interface AddressGuard {
    /** Null when the address may be dialled, else what it is. Text that is not an address is refused. */
    refusal(address: string): string | null;
    readonly lookup: LookupFunction;
    /** The same guard for sinks from the config file or from code: private and loopback addresses pass, metadata never. */
    readonly trusting: AddressGuard;
}
export interface AddressGuardOptions {
    /** CIDR ranges that pass although they are reserved; metadata addresses inside them do not. */
    readonly allow?: readonly string[] | undefined;
    readonly lookup?: LookupFunction | undefined;
}
/** The code of the error that a refused address fails a connection with. */
export declare const ADDRESS_REFUSED = "MAKEGOOD_ADDRESS_REFUSED";
export declare function createAddressGuard(options?: AddressGuardOptions): AddressGuard;
export interface ConnectorOptions {
    readonly connectTimeoutMs: number;
    readonly tls?: Pick<ConnectionOptions, "ca" | "cert" | "key"> | undefined;
}
/** An undici connector that dials only what the guard lets through. No proxy setting of the environment is honoured. */
export declare function guardedConnector(guard: AddressGuard, options: ConnectorOptions): buildConnector.connector;
/** Asks for all records and refuses the name when one of them is refused: half a rebinding is a rebinding. */
export declare function guardedLookup(guard: AddressGuard): LookupFunction;
