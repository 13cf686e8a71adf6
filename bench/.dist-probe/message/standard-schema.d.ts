/**
 * The types of Standard Schema v1 (standardschema.dev), written out so that Zod, Valibot, ArkType and the like type a topic
 * without any of them, or the specification's package, being a dependency.
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
    readonly "~standard": StandardProps<Input, Output>;
}
export interface StandardProps<Input = unknown, Output = Input> {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: {
        readonly input: Input;
        readonly output: Output;
    } | undefined;
}
export type StandardResult<Output> = {
    readonly value: Output;
    readonly issues?: undefined;
} | {
    readonly issues: readonly StandardIssue[];
};
export interface StandardIssue {
    readonly message: string;
    readonly path?: readonly (PropertyKey | {
        readonly key: PropertyKey;
    })[] | undefined;
}
export type InferInput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["input"];
export type InferOutput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["output"];
/** An issue as plain data: a path may hold symbols and objects, which neither JSON nor a log can show. */
export declare function issueText(issue: StandardIssue): {
    path: string;
    message: string;
};
