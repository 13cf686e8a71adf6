export declare function integer(text: string): number;
