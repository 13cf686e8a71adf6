/** What a word of a text may be by itself: a name, a word that says what happened, a little word, or letters that look like an id. */
import { wordSet } from "./characters.ts";

/** What a name follows: "user ann", "thread main". */
export const NOUNS = wordSet(
  "user username account tenant customer owner member operator host hostname node server client peer machine device interface driver disk " +
    "volume partition package process program thread daemon service module plugin component class bean job task queue topic channel bucket " +
    "table database schema index cluster container pod image namespace region zone domain realm source",
);
/** What follows such a noun and makes one thing of the two: "host key", "thread pool". */
const PARTS = wordSet(
  "name names key keys id ids type mode pool table tables system space list group password address count limit quota size state status error " +
    "errors info data file files path port stack manager level version session connection request response access agent code",
);
/** Not "to": a verb follows it as often as a name. */
export const PREPOSITIONS = wordSet("for from by at on in of with via");
const LITTLE = wordSet(
  "a an the this that these those all any some no not each every its their your my our to and or but if then than as be been is was are were " +
    "has had have will would can could cannot may must did does do because while when after before since until into within without during through",
);
/** The words after these are the cause itself. */
export const CAUSES = wordSet(
  "error code status reason cause exception failure result state signal errno with returned answered returns because due",
);
export const NEGATIONS = wordSet("no not never none cannot without");

/** Never a name, and never one of many values. */
export function isFunctionWord(text: string): boolean {
  return PREPOSITIONS.has(text) || LITTLE.has(text);
}

export function isParticiple(text: string): boolean {
  return text.endsWith("ed") || text.endsWith("ing");
}

export function mayBeName(text: string): boolean {
  return !/^.[A-Z]/.test(text) && !isFunctionWord(text) && !PARTS.has(text) && !isParticiple(text);
}

/** Written as no word of a sentence is: with a joint or a capital inside. */
export function isShaped(text: string): boolean {
  return /[^a-z\u0080-\uffff]/.test(text.slice(1, -1));
}

/** Dotted and slashed names: classes, packages, files. */
export function isName(text: string): boolean {
  return /[.$/\\@]/.test(text.slice(1, -1));
}

/** The class of an error and a constant of a program (SCREEN_ON, FAILED) say what happened, however many there are. */
export function saysWhat(text: string): boolean {
  return /(?:Exception|Error|Failure|Fault|(?:^|[^A-Za-z_\u0080-\uffff])[A-Z_]{2,})$/.test(text);
}

const USUAL_PAIRS = wordSet(
  "th he in er an re nd at on nt ha es st en ed to it ou ea hi is or ti as te et ng of al de se le sa si ar ve ra ld ur ll ro ri io " +
    "ic ne me li ma ch co ta ec ot om us di tr ac el ge ce be ho pe la ai il lo so no wa sh ut ly ul em im ss ee wi po ad id ir ig pa " +
    "un pr ns ca ct ie su mo ni fo ke ol rs mi do ag fi ow am ab ck cl bl pl gr br dr cr fr sp sc sk sl sm sn sw tw ay ey oy oo ff pp " +
    "tt rr gh ty ry cy by ap ep ip op up ev iv ov av vi va ga go gi gu bo ba bi bu fa fe fu ex ob os iz ue ui du tu ru lu mu nu pu cu " +
    "hu ki ka ks lt lk ls ms nk nn mm mp mb rm rn rk rt rd rv rg rc rp ft pt xt ts ds gs ps ph wh qu we wo nc na nf nv mo og ok ak ek",
);
/** Words of languages have more than this share of usual pairs. */
const USUAL_SHARE = 0.6;

/**
 * Whether letters look like an id that happens to have no digit: "kqzwvxpj", "fadeec". It is only asked about places where ids
 * have stood, so a wrong guess costs little.
 */
export function looksRandom(word: string): boolean {
  const letters = word.slice(word.search(/[^_.-]*$/)).toLowerCase();
  if (/^[a-f]{5,63}$/.test(letters)) return true;
  if (letters.length < 6) return false;
  let usual = 0;
  for (let i = 0; i + 1 < letters.length; i++) {
    const pair = letters.slice(i, i + 2);
    if (pair < "aa" || pair > "zz") return false;
    if (USUAL_PAIRS.has(pair)) usual++;
  }
  return usual / (letters.length - 1) < USUAL_SHARE;
}
