/**
 * The name of the schema that holds our tables, checked and quoted once. It is the only identifier that comes from
 * outside; every statement uses qualified names, so no search_path can put another object in place of ours.
 */
import { MakegoodError } from "../../message/errors.js";
const NAME = /^[a-z_][a-z0-9_]{0,50}$/;
/** The quoted name, or a refusal that says what is allowed. */
export function quoteSchema(name) {
    if (!NAME.test(name) || name.startsWith("pg_")) {
        throw new MakegoodError("invalid_config", `schema name ${JSON.stringify(name)} is refused: use lower-case letters, digits and _, at most 51, not starting with a digit or pg_`);
    }
    return `"${name}"`;
}
//# sourceMappingURL=schema-name.js.map