/**
 * The types of Standard Schema v1 (standardschema.dev), written out so that Zod, Valibot, ArkType and the like type a topic
 * without any of them, or the specification's package, being a dependency.
 */
/** An issue as plain data: a path may hold symbols and objects, which neither JSON nor a log can show. */
export function issueText(issue) {
    const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return { path, message: issue.message };
}
//# sourceMappingURL=standard-schema.js.map