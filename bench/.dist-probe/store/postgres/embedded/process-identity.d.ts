export interface ProcessIdentity {
    readonly pid: number;
    readonly start: string;
    readonly place: string;
}
/** The place whose pids this process can see. Two containers on one volume have the same boot and different namespaces. */
export declare function here(): Promise<string>;
/** Undefined when no such process runs here. A zombie does not run: it only waits to be collected. */
export declare function identify(pid: number): Promise<ProcessIdentity | undefined>;
export declare function isRunning(identity: ProcessIdentity): Promise<boolean>;
export declare function myIdentity(): Promise<ProcessIdentity>;
export declare function identityName(identity: ProcessIdentity): string;
/** Reads a name back; a trailing counter (several servers in one process) is allowed. */
export declare function parseIdentity(name: string): ProcessIdentity | undefined;
