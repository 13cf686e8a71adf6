/**
 * `makegood completion bash`: a script for bash that completes commands, options and choices, made from the commands as they are.
 */
import type { Command, Option } from "commander";

/** Options whose value is a file or a folder; bash completes those itself. */
const PATHS = /^--(file|directory|config|data-dir)$/;

export function completionCommand(program: Command): void {
  program
    .command("completion")
    .description("what a shell needs to complete makegood's commands")
    .command("bash")
    .description("print it for bash")
    .addHelpText("after", '\nExample:\n  $ eval "$(makegood completion bash)"   # or put it into ~/.bashrc')
    .action(() => {
      program.configureOutput().writeOut?.(script(program));
    });
}

interface Node {
  /** The commands above it and its own name, such as `messages list`. */
  readonly path: string;
  readonly command: Command;
}

function nodes(command: Command, path = ""): Node[] {
  const below = command.commands.flatMap((one) => nodes(one, `${path} ${one.name()}`.trim()));
  return [{ path, command }, ...below];
}

const flagOf = (option: Option): string => option.long ?? option.short ?? "";

function script(program: Command): string {
  const all = nodes(program);
  const inherited = program.options;
  const words = all.map(({ path, command }) => {
    const options = [...command.options, ...inherited].map(flagOf);
    return `    ${quoted(path)}) words=${quoted([...command.commands.map((one) => one.name()), ...new Set(options), "--help"].join(" "))} ;;`;
  });
  const values = all.flatMap(({ path, command }) =>
    [...command.options, ...(path === "" ? [] : inherited)].flatMap((option) => valueCase(path, option)),
  );
  const paths = all
    .slice(1)
    .map(({ path }) => quoted(path))
    .join("|");
  return `# bash completion of makegood: eval "$(makegood completion bash)"
_makegood() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= word words=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in ${paths}) path="\${path:+$path }$word" ;; esac
  done
  case "$path $prev" in
${values.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _makegood makegood
`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** What may stand behind an option that takes a value: its choices, a file, or something that only the caller knows. */
function valueCase(path: string, option: Option): string[] {
  if (!option.required && !option.optional) return [];
  const flag = flagOf(option);
  const found = PATHS.test(flag) ? "-f" : `-W ${quoted((option.argChoices ?? []).join(" "))}`;
  return [`    ${quoted(`${path} ${flag}`)}) COMPREPLY=($(compgen ${found} -- "$cur")); return ;;`];
}
