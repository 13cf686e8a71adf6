/** `makegood completion bash`: a script that completes commands, options and choices, made from the commands as they are. */
import type { Command, Option } from "commander";
import type { AddCommand } from "../conversation.ts";

/** Options whose value is a file or a folder; bash completes those itself. */
const PATHS = /^--(file|directory|config|data-dir)$/;

export const commands: AddCommand = (program) =>
  program
    .command("completion")
    .description("what a shell needs to complete makegood's commands")
    .command("bash")
    .description("print it for bash")
    .addHelpText("after", '\nExample:\n  $ eval "$(makegood completion bash)"   # or put it into ~/.bashrc')
    .action(() => program.configureOutput().writeOut?.(script(program)));

function commandsOf(command: Command, path = ""): (readonly [path: string, command: Command])[] {
  return [[path, command], ...command.commands.flatMap((one) => commandsOf(one, `${path} ${one.name()}`.trim()))];
}

const flagOf = (option: Option): string => option.long ?? option.short ?? "";
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function script(program: Command): string {
  const all = commandsOf(program);
  const optionsOf = (command: Command) => [...new Set([...command.options, ...program.options])];
  const values = all.flatMap(([path, command]) => optionsOf(command).flatMap((option) => valueCase(path, option)));
  const words = all.map(([path, command]) => {
    const known = [...command.commands.map((one) => one.name()), ...optionsOf(command).map(flagOf), "--help"];
    return `    ${quoted(path)}) words=${quoted(known.join(" "))} ;;`;
  });
  const paths = all.slice(1).map(([path]) => quoted(path));
  return `# bash completion of makegood: eval "$(makegood completion bash)"
_makegood() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= word words=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in ${paths.join("|")}) path="\${path:+$path }$word" ;; esac
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

function valueCase(path: string, option: Option): string[] {
  if (!option.required && !option.optional) return [];
  const found = PATHS.test(flagOf(option)) ? "-f" : `-W ${quoted((option.argChoices ?? []).join(" "))}`;
  return [`    ${quoted(`${path} ${flagOf(option)}`)}) COMPREPLY=($(compgen ${found} -- "$cur")); return ;;`];
}
