/**
 * Whether a word of letters looks like an id that happens to have no digit: "kqzwvxpj", "fadeec". Decided by how many of its
 * pairs of letters are usual in words. It is only asked about places where ids have stood, so a wrong guess costs little.
 */

const USUAL = new Set(
  (
    "th he in er an re nd at on nt ha es st en ed to it ou ea hi is or ti as te et ng of al de se le sa si ar ve ra ld ur ll ro ri io " +
    "ic ne me li ma ch co ta ec ot om us di tr ac el ge ce be ho pe la ai il lo so no wa sh ut ly ul em im ss ee wi po ad id ir ig pa " +
    "un pr ns ca ct ie su mo ni fo ke ol rs mi do ag fi ow am ab ck cl bl pl gr br dr cr fr sp sc sk sl sm sn sw tw ay ey oy oo ff pp " +
    "tt rr gh ty ry cy by ap ep ip op up ev iv ov av vi va ga go gi gu bo ba bi bu fa fe fu ex ob os iz ue ui du tu ru lu mu nu pu cu " +
    "hu ki ka ks lt lk ls ms nk nn mm mp mb rm rn rk rt rd rv rg rc rp ft pt xt ts ds gs ps ph wh qu we wo nc na nf nv mo og ok ak ek"
  ).split(" "),
);

const LETTERS_MIN = 6;
const HEX_LETTERS_MIN = 5;
/** Words of languages have more than this share of usual pairs. */
const SHARE = 0.6;

export function looksRandom(word: string): boolean {
  const joint = Math.max(word.lastIndexOf("_"), word.lastIndexOf("-"), word.lastIndexOf("."));
  const part = word.slice(joint + 1);
  const letters = part.toLowerCase();
  if (letters.length >= HEX_LETTERS_MIN && letters.length < 64 && [...letters].every((c) => c >= "a" && c <= "f")) return true;
  if (letters.length < LETTERS_MIN) return false;
  let usual = 0;
  for (let i = 0; i + 1 < letters.length; i++) {
    const pair = letters.slice(i, i + 2);
    if (pair < "aa" || pair > "zz") return false;
    if (USUAL.has(pair)) usual++;
  }
  return usual / (letters.length - 1) < SHARE;
}
