/** 4 bytes or 16. */
export type Address = Uint8Array;
export interface Range {
    readonly bytes: Address;
    readonly bits: number;
}
/** Null when the text is not an address. A zone (`fe80::1%eth0`) is dropped: it does not change what the address is. */
export declare function parseAddress(text: string): Address | null;
/** `10.0.0.0/8`, `fd00::/8`, or one address. Null when malformed. */
export declare function parseCidr(text: string): Range | null;
export declare function contains(range: Range, address: Address): boolean;
