export declare function nonce(): string;
export declare function writeWhole(path: string, text: string, own: (path: string) => Promise<void>): Promise<void>;
/** A rename is durable only when the folder is. */
export declare function syncFolder(path: string): Promise<void>;
