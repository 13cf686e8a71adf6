export declare const DATABASE = "makegood";
export declare function urlOf(port: number, password: string, database?: string): string;
export interface Credentials {
    readonly directory: {
        readonly pgdata: string;
    };
    readonly password: string;
    readonly log: (message: string) => void;
}
/** True when it serves; false when it does not answer (yet): the caller knows whether to wait. Throws what waiting cannot mend. */
export declare function serves(port: number, credentials: Credentials): Promise<boolean>;
