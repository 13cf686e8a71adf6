import { checkConfiguration, checkNode } from "../doctor/machine.js";
import { checkServer } from "../doctor/server.js";
import { checkStore } from "../doctor/store.js";
import { EXIT } from "../exit-code.js";
import { printJson, say } from "../io.js";
export function doctorCommand(program, run) {
    program
        .command("doctor")
        .description("check the machine, the configuration and the store (or the server of MAKEGOOD_URL)")
        .action(() => run(examine));
}
async function examine(context) {
    const { io, config, json } = context;
    const findings = [checkNode(), ...(await checkConfiguration(config))];
    findings.push(...(config.url === null ? await checkStore(context) : await checkServer(config.url, config.token)));
    const failed = findings.some(({ status }) => status === "fail");
    if (json)
        printJson(io, JSON.stringify({ status: failed ? "fail" : "ok", checks: findings }));
    else
        report(io, findings);
    return failed ? EXIT.failed : EXIT.ok;
}
function report(io, findings) {
    const width = Math.max(...findings.map(({ name }) => name.length));
    for (const { status, name, detail } of findings)
        say(io, `${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
    const count = (status) => findings.filter((finding) => finding.status === status).length;
    say(io, "", `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed`);
}
//# sourceMappingURL=doctor.js.map