/**
 * A whole number on the command line: what is not one is refused as a wrong argument, never sent as something else.
 */
import { InvalidArgumentError } from "commander";
export function integer(text) {
    if (!/^-?[0-9]{1,15}$/.test(text))
        throw new InvalidArgumentError("It must be a whole number.");
    return Number(text);
}
//# sourceMappingURL=integer.js.map