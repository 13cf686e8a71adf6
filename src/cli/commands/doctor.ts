/** `makegood doctor`: whether all that a delivery depends on is well; exit code 1 where messages would be lost or stop, or an item of a checklist fails. */
import { Option } from "commander";
import { examineMachine } from "../../doctor/machine.ts";
import { hold, PROFILES } from "../../doctor/profiles.ts";
import { examineLife, examineServer } from "../../doctor/server.ts";
import { examineStores } from "../../doctor/stores.ts";
import { type Examined, examined } from "../../store/shared/examined.ts";
import type { AddCommand, CommandContext } from "../conversation.ts";
import { EXIT, type ExitCode, type Io, Stop, say, tell } from "../io.ts";
import { refuseNowhere, warnings } from "../local.ts";

type Options = { readonly profile?: string; readonly sinks?: boolean };

const LIVE = "live";
const ABOUT =
  "hold a checklist instead: shadow (before billing is activated); pre, deploy, post (of recovery); live (does the process answer?)";

export const commands: AddCommand = (program, run) =>
  program
    .command("doctor")
    .description("check the machine, the configuration and the store (or the server of MAKEGOOD_URL)")
    .option("--sinks", "also dial the receiver of every topic; nothing is sent")
    .addOption(new Option("--profile <name>", ABOUT).choices([...Object.keys(PROFILES), LIVE]))
    .action((options: Options) => run((context) => examine(context, options), { asksServer: true }));

async function examine(context: CommandContext, options: Options): Promise<ExitCode> {
  const { io, config } = context;
  const found =
    options.profile === LIVE ? await examineLife(config.url ?? `http://127.0.0.1:${config.port}`) : await look(context, options);
  const items = PROFILES[options.profile ?? ""];
  const checks = items === undefined ? found : hold(items, found, config);
  const failed = checks.some(({ status }) => status === "fail");
  tell(context, { status: failed ? "fail" : "ok", profile: options.profile, checks }, () => show(io, checks));
  return failed ? EXIT.failed : EXIT.ok;
}

async function look(context: CommandContext, { profile, sinks: dials = false }: Options): Promise<Examined[]> {
  const { io, config, init } = context;
  const machine = await examineMachine(config, io.env, io.cwd);
  if (config.url !== null) return [...machine, ...(await examineServer(config.url, config.token))];
  try {
    if (!init) await refuseNowhere(config);
  } catch (error) {
    if (error instanceof Stop) return [...machine, examined("store", false, error.message, "warn")];
    throw error;
  }
  // FIN-6: what is only vouched for was not verified.
  return [...machine, ...(await examineStores({ config, log: warnings(io), dials, attested: profile !== "shadow" }))];
}

function show(io: Io, found: readonly Examined[]): void {
  const width = Math.max(...found.map(({ name }) => name.length));
  for (const { status, name, detail } of found) say(io, `${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
  const count = (wanted: Examined["status"]): number => found.filter(({ status }) => status === wanted).length;
  say(io, "", `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed`);
}
