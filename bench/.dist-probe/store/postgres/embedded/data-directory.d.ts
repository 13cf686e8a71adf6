import { type ServerUser } from "./server-user.ts";
export interface DataDirectory {
    /** Without symbolic links, so that two processes that come by different ways see one name. */
    readonly path: string;
    readonly pgdata: string;
    readonly user: ServerUser;
    /** When root works in a directory of somebody else, what root makes there is given to that owner. */
    own(path: string): Promise<void>;
}
export declare function openDirectory(dataDir: string): Promise<DataDirectory>;
/**
 * What stands in `pgdata`: nothing yet, or data of this major version. Anything else is refused; it may be somebody's data.
 */
export declare function stateOfData(pgdata: string, major: number): Promise<"missing" | "present">;
