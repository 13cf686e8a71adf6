/**
 * The API as the commands call it: over HTTP where MAKEGOOD_URL says so, else the same handlers on the store itself, opened
 * for the duration of the command. Either way the answers are those of the contract.
 */
import { userInfo } from "node:os";
import { createMakegood } from "../create.js";
import { errorText, isMakegoodError } from "../message/errors.js";
import { createLog } from "../observe/log.js";
import { systemClock } from "../platform/clock.js";
import { createApp } from "../server/app.js";
import { openStore } from "../server/open-store.js";
import { kernelOf, makegoodOptions } from "../server/serve.js";
import { EXIT, exitCodeOf } from "./exit-code.js";
import { complain } from "./io.js";
export async function openApi(io, config) {
    return config.url === null ? localApi(io, config) : remoteApi(config.url, config.token);
}
function apiOn(base, headers, send, close) {
    return {
        async call(method, path, body) {
            const init = { method, redirect: "error", headers: { ...headers, "content-type": "application/json" } };
            if (body !== undefined)
                init.body = body;
            const response = await send(new Request(base + path, init));
            return { status: response.status, text: await response.text() };
        },
        close,
    };
}
function remoteApi(url, token) {
    const base = url.replace(/\/$/, "");
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    return apiOn(base, headers, fetch, async () => { });
}
async function localApi(io, config) {
    const clock = systemClock;
    const log = createLog({ clock, format: "text", level: "warn", write: (line) => io.err(line) });
    const opened = await openStore({ config, log });
    try {
        const mg = await createMakegood(makegoodOptions(config, opened.store, log, clock));
        const kernel = kernelOf({ config, mg, log, clock, worker: null, draining: () => false });
        const app = createApp({ kernel, tokens: [], anonymous: actor(), hosts: null });
        return apiOn("http://localhost", {}, app.fetch, async () => {
            await mg.close();
            await opened.release();
        });
    }
    catch (error) {
        await opened.release();
        throw error;
    }
}
/** Under whose name the history will show what was done here. */
function actor() {
    try {
        return `cli:${userInfo().username}`;
    }
    catch {
        return "cli";
    }
}
/** Runs one conversation and says what went wrong, in words and in the exit code. */
export async function withApi(io, config, use) {
    let api;
    try {
        api = await openApi(io, config);
        return await use(api);
    }
    catch (error) {
        complain(io, `makegood: ${unreachable(error, config)}`);
        return EXIT.failed;
    }
    finally {
        await api?.close().catch((error) => complain(io, `makegood: could not close cleanly: ${errorText(error)}`));
    }
}
function unreachable(error, config) {
    if (isMakegoodError(error) || config.url === null)
        return errorText(error);
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return `cannot reach ${config.url}: ${errorText(cause)}`;
}
/** True when the answer was good; otherwise it has been reported and `exit` says how. */
export function refusedAnswer(io, answer, asJson) {
    if (answer.status < 400)
        return null;
    const problem = problemIn(answer.text);
    if (asJson)
        io.err(`${answer.text}\n`);
    else {
        complain(io, `makegood: ${problem.detail} (${problem.code})`);
        for (const error of problem.errors) {
            complain(io, `  ${[error.field, error.index, error.code].find((one) => one !== undefined)}: ${error.detail}`);
        }
    }
    return exitCodeOf(answer.status, problem.code);
}
function problemIn(text) {
    try {
        const { code, detail, errors } = JSON.parse(text);
        return { code: String(code), detail: String(detail), errors: Array.isArray(errors) ? errors : [] };
    }
    catch {
        return { code: "no_problem_json", detail: text.slice(0, 500), errors: [] };
    }
}
//# sourceMappingURL=api.js.map