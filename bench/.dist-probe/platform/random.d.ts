export interface Random {
    /** In [0, 1). */
    next(): number;
    bytes(n: number): Uint8Array;
}
export declare const systemRandom: Random;
