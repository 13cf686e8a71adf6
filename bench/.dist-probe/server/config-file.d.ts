export type LoadedFile = {
    readonly kind: "none";
} | {
    readonly kind: "loaded";
    readonly path: string;
    readonly value: unknown;
} | {
    readonly kind: "fault";
    readonly fault: string;
};
export declare function loadConfigFile(cwd: string, asked: string | null): Promise<LoadedFile>;
