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
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type InferInput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["input"];
export type InferOutput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["output"];

/** A schema of our own: what a function finds wrong with a value, and its type where that is nothing. */
export function schemaOf<T>(issuesOf: (value: unknown) => readonly StandardIssue[]): StandardSchemaV1<T> {
  const validate = (value: unknown): StandardResult<T> => {
    const issues = issuesOf(value);
    return issues.length > 0 ? { issues } : { value: value as T };
  };
  return { "~standard": { version: 1, vendor: "makegood", validate } };
}

/** An issue as plain data: a path may hold symbols and objects, which neither JSON nor a log can show. */
export function issueText(issue: StandardIssue): { path: string; message: string } {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return { path, message: issue.message };
}
