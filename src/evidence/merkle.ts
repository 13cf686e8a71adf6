/** The Merkle tree of RFC 6962: leaves and nodes are hashed under different prefixes, so that neither can pass for the other. */
import { createHash } from "node:crypto";

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

export function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

export const leafHash = (...data: readonly Uint8Array[]): Buffer => sha256(LEAF, ...data);
const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(NODE, left, right);

/** Takes leaves one by one and keeps only the roots of whole subtrees: a month of records needs no more memory than a minute. */
export function createTree() {
  const whole: Buffer[] = [];
  let size = 0;
  return {
    add(leaf: Buffer): void {
      let top = leaf;
      for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) top = nodeHash(whole.pop() as Buffer, top);
      whole.push(top);
      size++;
    },
    get size() {
      return size;
    },
    root: (): Buffer => (size === 0 ? sha256() : whole.reduceRight((right, left) => nodeHash(left, right))),
  };
}

export function rootOf(leaves: readonly Buffer[]): Buffer {
  const tree = createTree();
  for (const leaf of leaves) tree.add(leaf);
  return tree.root();
}

/** The largest power of two below `size`: where RFC 6962 cuts. */
function cut(size: number): number {
  let k = 1;
  while (k * 2 < size) k *= 2;
  return k;
}

/** What each leaf needs to come to the root, from the bottom up; every subtree is hashed once, however many paths are asked for. */
export function createPaths(leaves: readonly Buffer[]): (index: number) => Buffer[] {
  const known = new Map<string, Buffer>();
  const root = (from: number, to: number): Buffer => {
    if (to - from === 1) return leaves[from] as Buffer;
    const at = `${from}-${to}`;
    const middle = from + cut(to - from);
    const made = known.get(at) ?? nodeHash(root(from, middle), root(middle, to));
    known.set(at, made);
    return made;
  };
  const path = (index: number, from: number, to: number): Buffer[] => {
    if (to - from <= 1) return [];
    const middle = from + cut(to - from);
    return index < middle ? [...path(index, from, middle), root(middle, to)] : [...path(index, middle, to), root(from, middle)];
  };
  return (index) => path(index, 0, leaves.length);
}

/** The root that a leaf comes to by its path; null where the path does not fit the place. */
export function rootByPath(leaf: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer | null {
  if (!(index >= 0 && index < size)) return null;
  if (size === 1) return path.length === 0 ? leaf : null;
  const k = cut(size);
  const [beside, below] = [path.at(-1), path.slice(0, -1)];
  if (beside === undefined) return null;
  const inner = index < k ? rootByPath(leaf, index, k, below) : rootByPath(leaf, index - k, size - k, below);
  return inner && (index < k ? nodeHash(inner, beside) : nodeHash(beside, inner));
}
