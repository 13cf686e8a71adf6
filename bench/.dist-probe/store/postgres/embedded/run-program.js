/**
 * Runs one short program to its end, under the server's user and with an environment of its own: PGPORT, PGOPTIONS or a
 * locale of the caller must not change what initdb and postgres do. Output is kept up to a limit.
 */
import { spawn } from "node:child_process";
export const SERVER_ENV = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
const OUTPUT_CHARS_MAX = 64_000;
/** Rejects when the program cannot be started at all (ENOENT, EACCES, EPERM); anything it says itself is in the result. */
export function runProgram(command, args, user, options = {}) {
    return new Promise((resolve, reject) => {
        const child = spawn(command, args, { ...user, cwd: options.cwd ?? "/", env: SERVER_ENV, stdio: "pipe" });
        let output = "";
        const keep = (chunk) => {
            output = (output + chunk).slice(-OUTPUT_CHARS_MAX);
        };
        child.stdout.setEncoding("utf8").on("data", keep);
        child.stderr.setEncoding("utf8").on("data", keep);
        child.on("error", reject);
        child.on("close", (code, signal) => resolve({ code, signal, output }));
        // A program that ends without reading its input must not end us.
        child.stdin.on("error", () => undefined);
        child.stdin.end(options.input ?? "");
    });
}
//# sourceMappingURL=run-program.js.map