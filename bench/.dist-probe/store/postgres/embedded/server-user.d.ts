/** Spread into spawn's options; empty when PostgreSQL runs as the user we are. */
export interface ServerUser {
    readonly uid?: number;
    readonly gid?: number;
}
export declare function isRoot(): boolean;
export declare function chooseServerUser(pgdata: string): Promise<ServerUser>;
