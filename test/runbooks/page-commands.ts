/** The commands of a page as lists of words, as a shell would hand them over: with something in the place of each variable and placeholder. */
import { shellBlocks } from "../support/shell.ts";

const ID = "0192d1c4-1111-7000-8000-000000000000";
/** What stands for a variable; for all others an id does. */
const VALUES: Readonly<Record<string, string>> = { TOPIC: "shop/charge", STREAM: "recovery", GROUP: "12" };
const PLACEHOLDERS: Readonly<Record<string, string>> = { topic: "shop/charge", group: "12", candidate: "12" };

const WORD = /"((?:[^"\\]|\\.)*)"|'([^']*)'|\$\((?:[^()]|\([^()]*\))*\)|[^\s"']+/gy;
/** Where a command of a shell ends. */
const END = /^(?:\||\|\||&&|;|#|>|>>|\)|&)/;

const filled = (word: string): string =>
  word
    .replace(/\$\((?:[^()]|\([^()]*\))*\)/g, ID)
    .replace(/\$\{?([A-Za-z_0-9]+)[^}\s"]*\}?/g, (_, name: string) => VALUES[name] ?? ID)
    .replace(/<([\w-]+)>/g, (_, name: string) => PLACEHOLDERS[name] ?? ID);

function wordsOf(line: string): string[] {
  const words: string[] = [];
  let rest = line.trimStart();
  while (rest !== "" && !END.test(rest)) {
    WORD.lastIndex = 0;
    const match = WORD.exec(rest);
    if (match === null) break;
    const [whole] = match;
    const text = match[1] ?? match[2] ?? whole;
    const bare = match[1] === undefined && match[2] === undefined && !whole.startsWith("$(");
    // Of a bare word what closes the shell around it is no part.
    words.push(filled(bare ? text.replace(/[);]+$/, "") : text));
    if (bare && /[);]$/.test(whole)) break;
    rest = rest.slice(whole.length).trimStart();
  }
  return words;
}

export function commandsOf(page: string): string[][] {
  const prose = page.replace(/```[\s\S]*?```/g, "");
  const quoted = [...prose.matchAll(/`makegood ([^`]+)`/g)].map((match) => match[1] as string);
  const lines = shellBlocks(page)
    .join("\n")
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*$/, ""));
  const fenced = lines.flatMap((line) =>
    [...line.matchAll(/(?<![\w./-])makegood (?=[a-z])/g)].map((match) => line.slice((match.index ?? 0) + 9)),
  );
  // `systemctl start makegood && …` names a service.
  const asked = fenced.filter((text) => !/^(?:&&|\|\|)/.test(text));
  return [...quoted, ...asked].map(wordsOf).filter((words) => words.length > 0);
}
