/**
 * Where a command reads and writes. What it prints for people has every control character spelled out, so that a payload
 * or a receiver's error text cannot steer a terminal; JSON is exact when a program reads it.
 */
import { readFile } from "node:fs/promises";
import { escapeControl } from "../observe/log.js";
export function processIo() {
    const { stdin, stdout, stderr, env } = process;
    // A reader that went away (`| head`) is not an error of ours.
    stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));
    return {
        env,
        cwd: process.cwd(),
        tty: stdout.isTTY === true,
        color: stdout.isTTY === true && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb",
        out: (text) => void stdout.write(text),
        err: (text) => void stderr.write(text),
        async stdin() {
            if (stdin.isTTY)
                return null;
            const chunks = [];
            for await (const chunk of stdin)
                chunks.push(chunk);
            return Buffer.concat(chunks);
        },
    };
}
/** Lines for people. */
export function say(io, ...lines) {
    io.out(`${lines.map(escapeControl).join("\n")}\n`);
}
export function complain(io, ...lines) {
    io.err(`${lines.map(escapeControl).join("\n")}\n`);
}
/** JSON text: as it is for a program; harmless, and still the same JSON, on a terminal. */
export function printJson(io, text) {
    io.out(`${io.tty ? escapeControl(text) : text}\n`);
}
/** Columns as wide as what stands in them; the last one as long as it likes. */
export function table(io, heads, rows) {
    const safe = rows.map((row) => row.map((cell) => escapeControl(cell)));
    const widths = heads.map((head, i) => Math.max(head.length, ...safe.map((row) => (row[i] ?? "").length)));
    const line = (cells) => cells
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd();
    const head = line(heads.map((one) => one.toUpperCase()));
    io.out(`${[io.color ? `\u001b[1m${head}\u001b[22m` : head, ...safe.map(line)].join("\n")}\n`);
}
/** The text that an option, a file or standard input holds; a string says what is wrong. */
export async function readInput(io, file) {
    try {
        const bytes = file === undefined || file === "-" ? await io.stdin() : await readFile(file);
        if (bytes === null)
            return { fault: "nothing was given: use an option, a file, or standard input" };
        return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
    }
    catch (error) {
        const fault = error instanceof TypeError ? "it is not valid UTF-8" : error instanceof Error ? error.message : String(error);
        return { fault };
    }
}
//# sourceMappingURL=io.js.map