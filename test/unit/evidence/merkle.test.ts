/** The tree against the definition of RFC 6962 and its known answers, and notes against the form of C2SP. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createPaths, createTree, leafHash, rootByPath, rootOf } from "../../../src/evidence/merkle.ts";
import { newKeyLine, parseKeys, readNote, signNote } from "../../../src/evidence/notes.ts";
import { systemRandom } from "../../../src/platform/random.ts";

/** The definition, word for word: the left part is the largest power of two below the size. */
function defined(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return createHash("sha256").digest();
  if (leaves.length === 1) return leaves[0] as Buffer;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  const parts = [Buffer.of(1), defined(leaves.slice(0, k)), defined(leaves.slice(k))];
  return createHash("sha256").update(Buffer.concat(parts)).digest();
}

const leaves = (n: number): Buffer[] => Array.from({ length: n }, (_, i) => leafHash(Buffer.from(`row ${i}`)));

describe("the tree", () => {
  it("gives the known roots of the reference implementation of RFC 6962", () => {
    const inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    const all = inputs.map((hex) => leafHash(Buffer.from(hex, "hex")));
    expect(rootOf([]).toString("hex")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(rootOf(all.slice(0, 1)).toString("hex")).toBe("6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    expect(rootOf(all).toString("hex")).toBe("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
  });

  it("comes to the defined root at every size, and every leaf has a path to it", () => {
    for (const size of [1, 2, 3, 5, 7, 8, 9, 31, 33, 64, 100]) {
      const all = leaves(size);
      const root = defined(all);
      const tree = createTree();
      for (const leaf of all) tree.add(leaf);
      expect(tree.root().equals(root)).toBe(true);
      const pathOf = createPaths(all);
      for (const [i, leaf] of all.entries()) {
        const path = pathOf(i);
        expect(rootByPath(leaf, i, size, path)?.equals(root)).toBe(true);
        if (size > 1) expect(rootByPath(leaf, (i + 1) % size, size, path)?.equals(root) ?? false).toBe(false);
        expect(rootByPath(leaf, i, size, [...path, leaf])).toBeNull();
      }
    }
    expect(rootByPath(leafHash(), 5, 5, [])).toBeNull();
  });
});

describe("notes", () => {
  const [key] = parseKeys(newKeyLine(systemRandom));
  const [other] = parseKeys(newKeyLine(systemRandom));

  it("verify the example of the specification", () => {
    const example = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    const signature = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";
    const note = `${text}\n\u2014 PeterNeumann ${signature}\n`;
    expect(readNote(note, parseKeys(example))).toEqual({ text, signed: "trusted" });
    expect(readNote(note.replace("answer", "Answer"), parseKeys(example)).signed).toBe("bad");
  });

  it("are trusted by the key that signed, unknown to another, and bad when the text was changed", () => {
    const note = signNote("a\nb\n", [key!]);
    expect(readNote(note, [key!])).toEqual({ text: "a\nb\n", signed: "trusted" });
    expect(readNote(note, parseKeys(key!.verifier)).signed).toBe("trusted");
    expect(readNote(note, [other!]).signed).toBe("unknown");
    expect(readNote(note.replace("a\nb", "a\nc"), [key!]).signed).toBe("bad");
    expect(readNote("a\nb\n", [key!]).signed).toBe("none");
  });

  it("signed by two keys satisfy a reader who knows only one of them", () => {
    const note = signNote("a\n", [key!, other!]);
    expect([key!, other!].map((one) => readNote(note, [one]).signed)).toEqual(["trusted", "trusted"]);
  });

  it("a key that is none is refused without being repeated", () => {
    const secret = newKeyLine(systemRandom).slice(0, -8);
    expect(() => parseKeys(`# remark\n${secret}`)).toThrow(/line 2/);
    try {
      parseKeys(secret);
    } catch (error) {
      expect(String(error)).not.toContain(secret.slice(-20));
    }
  });
});
