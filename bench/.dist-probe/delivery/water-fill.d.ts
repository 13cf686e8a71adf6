/**
 * Max-min fairness, pure: hands out an amount so that those who hold least get most, as water finds its level. Nobody gets
 * more than his `max`, and everything is handed out unless all are full.
 */
export interface Vessel {
    /** What it holds already. */
    readonly held: number;
    /** The most it may be given now. */
    readonly max: number;
}
/** What each is given, in their order; where the last units do not divide, earlier ones get them. */
export declare function waterFill(vessels: readonly Vessel[], amount: number): number[];
