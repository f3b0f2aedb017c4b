import { fromHex, toHex, utf8 } from '@nd7/entry';
import fc from 'fast-check';
import type { Count } from './index.js';
import {
  consistencyProof,
  emptyRoot,
  inclusionProof,
  leafHash,
  newNodes,
  nodeHash,
  treeRoot,
  verifyConsistency,
  verifyInclusion,
} from './index.js';

const leaves = Array.from({ length: 300 }, (_, i) => leafHash(utf8(`leaf ${String(i)}`)));

/** The definition of RFC 6962 section 2.1, as it is written. */
function definedRoot(hashes: readonly Uint8Array[]): Uint8Array {
  if (hashes.length < 2) return hashes[0] ?? emptyRoot;
  let half = 1;
  while (half * 2 < hashes.length) half *= 2;
  return nodeHash(definedRoot(hashes.slice(0, half)), definedRoot(hashes.slice(half)));
}

function definedPath(hashes: readonly Uint8Array[], index: number): Uint8Array[] {
  if (hashes.length < 2) return [];
  let half = 1;
  while (half * 2 < hashes.length) half *= 2;
  const [left, right] = [hashes.slice(0, half), hashes.slice(half)];
  return index < half
    ? [...definedPath(left, index), definedRoot(right)]
    : [...definedPath(right, index - half), definedRoot(left)];
}

/** Reads complete subtrees only, as a store of nodes would. */
const reader =
  (size: number) =>
  (level: number, index: number): Uint8Array => {
    const width = 2 ** level;
    if ((index + 1) * width > size)
      throw new Error(`node ${String(level)}/${String(index)} is not complete at ${String(size)}`);
    return definedRoot(leaves.slice(index * width, (index + 1) * width));
  };

const SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 127, 128, 129, 255, 256, 257, 300];

test('RFC 6962 hashes', () => {
  expect(toHex(emptyRoot)).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  expect(toHex(leafHash(new Uint8Array(0)))).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d');
  expect(toHex(leafHash(utf8('L123456')))).toBe('395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56');
  expect(toHex(nodeHash(utf8('N123'), utf8('N456')))).toBe(
    'aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb',
  );
});

test('roots and inclusion proofs are those of the definition, and verify at their place only', async () => {
  for (const size of SIZES) {
    const all = leaves.slice(0, size);
    const root = await treeRoot(size, reader(size));
    expect(toHex(root)).toBe(toHex(definedRoot(all)));
    for (const index of new Set([0, 1, size >> 1, size - 2, size - 1].filter((i) => i >= 0 && i < size))) {
      const proof = await inclusionProof(index, size, reader(size));
      expect(proof.map(toHex)).toEqual(definedPath(all, index).map(toHex));
      const leaf = all[index]!;
      expect(verifyInclusion(leaf, index, size, proof, root)).toBe(true);
      expect(verifyInclusion(leaf, BigInt(index), BigInt(size), proof, root)).toBe(true);
      for (const other of [index - 1, index + 1, size, size + 1, -1, index + 0.5, NaN, Infinity]) {
        if (other !== index) expect(verifyInclusion(leaf, other, size, proof, root)).toBe(false);
      }
      expect(verifyInclusion(leaves[(index + 1) % 300]!, index, size, proof, root)).toBe(false);
      expect(verifyInclusion(leaf, index, size, [...proof, leaf], root)).toBe(false);
      expect(verifyInclusion(leaf, index, size, [leaf, ...proof], root)).toBe(false);
      if (proof.length > 0) expect(verifyInclusion(leaf, index, size, proof.slice(1), root)).toBe(false);
      if (proof.length > 0) expect(verifyInclusion(leaf, index, size, proof.slice(0, -1), root)).toBe(false);
      expect(
        verifyInclusion(
          leaf,
          index,
          size,
          proof.map((hash) => hash.subarray(1)),
          root,
        ),
      ).toBe(proof.length === 0);
    }
  }
  expect(verifyInclusion(leaves[0]!, 0, 0, [], emptyRoot)).toBe(false);
  expect(toHex(await treeRoot(0, reader(0)))).toBe(toHex(emptyRoot));
});

test('consistency proofs verify between every two sizes, and not between others', async () => {
  for (const size2 of SIZES.filter((size) => size <= 129)) {
    const root2 = definedRoot(leaves.slice(0, size2));
    for (let size1 = 1; size1 <= size2; size1++) {
      const root1 = definedRoot(leaves.slice(0, size1));
      const proof = await consistencyProof(size1, size2, reader(size2));
      expect(verifyConsistency(size1, root1, size2, root2, proof)).toBe(true);
      expect(verifyConsistency(size1, root2, size2, root1, proof)).toBe(size1 === size2);
      expect(verifyConsistency(size1, leaves[299]!, size2, root2, proof)).toBe(false);
      expect(verifyConsistency(size1, root1, size2, leaves[299]!, proof)).toBe(false);
      expect(verifyConsistency(size1, root1, size2, root2, [...proof, root1])).toBe(false);
      if (proof.length > 0) expect(verifyConsistency(size1, root1, size2, root2, proof.slice(1))).toBe(false);
      if (proof.length > 0) expect(verifyConsistency(size1, root1, size2, root2, proof.slice(0, -1))).toBe(false);
      if (size1 < size2) expect(verifyConsistency(size2, root2, size1, root1, proof)).toBe(false);
    }
  }
});

test('from the empty tree the proof is empty, and the empty tree has one root', async () => {
  const root = definedRoot(leaves.slice(0, 5));
  expect(await consistencyProof(0, 5, reader(5))).toEqual([]);
  expect(verifyConsistency(0, emptyRoot, 5, root, [])).toBe(true);
  expect(verifyConsistency(0, root, 5, root, [])).toBe(false);
  expect(verifyConsistency(0, emptyRoot, 5, root, [root])).toBe(false);
  expect(verifyConsistency(0, emptyRoot, 0, emptyRoot, [])).toBe(true);
  expect(verifyConsistency(0, root, 0, root, [])).toBe(false);
  expect(verifyConsistency(5, root, 5, root, [])).toBe(true);
  expect(verifyConsistency(5, root, 5, root, [root])).toBe(false);
  expect(verifyConsistency(-1, root, 5, root, [])).toBe(false);
});

test('places and sizes up to 16 digits lose nothing', () => {
  // The last leaf of a tree of 2^k + 1: one sibling, the root of the complete left tree.
  const left = leaves[0]!;
  const leaf = leaves[1]!;
  const root = nodeHash(left, leaf);
  for (const size of [2 ** 31 + 1, 2 ** 32 + 1, 2 ** 52 + 1] satisfies Count[]) {
    expect(verifyInclusion(leaf, size - 1, size, [left], root)).toBe(true);
    expect(verifyInclusion(leaf, size - 2, size, [left], root)).toBe(false);
    expect(verifyInclusion(leaf, size - 1, size + 1, [left], root)).toBe(false);
  }
  const huge = 2n ** 53n + 1n; // the first count that no number holds
  expect(verifyInclusion(leaf, huge - 1n, huge, [left], root)).toBe(true);
  expect(verifyInclusion(leaf, huge - 2n, huge, [left], root)).toBe(false);
  expect(verifyInclusion(leaf, huge, huge + 1n, [left], root)).toBe(false);
  expect(verifyInclusion(leaf, 9_999_999_999_999_998n, 9_999_999_999_999_999n, [left], root)).toBe(false);
  // A number that stands for several counts stands for none.
  expect(verifyInclusion(leaf, 2 ** 53, 2 ** 53 + 2, [left], root)).toBe(false);
  expect(verifyConsistency(2n ** 53n, left, 2n ** 53n + 1n, root, [leaf])).toBe(true);
  expect(verifyConsistency(2n ** 53n, left, 2n ** 53n + 2n, root, [leaf])).toBe(true);
  expect(verifyConsistency(2n ** 53n - 1n, left, 2n ** 53n + 1n, root, [leaf])).toBe(false);
});

test('proofs are found in the largest trees without walking them', async () => {
  const asked: string[] = [];
  const size = 2 ** 52 + 12_345;
  const proof = await inclusionProof(2 ** 52 + 5, size, (level, index) => {
    asked.push(`${String(level)}/${String(index)}`);
    return leafHash(utf8(`${String(level)}/${String(index)}`));
  });
  expect(proof.length).toBeLessThanOrEqual(53);
  expect(asked.length).toBeLessThan(120);
  expect(asked).toContain(`52/0`);
});

test('appending makes each complete node once, and reads only complete ones', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 6 }), async (batches) => {
      const stored = new Map<string, Uint8Array>();
      let size = 0;
      for (const batch of batches) {
        const added = await newNodes(size, leaves.slice(size, size + batch), (level, index) => {
          const node = stored.get(`${String(level)}/${String(index)}`);
          if (node === undefined) throw new Error('asked for a node that is not there');
          return node;
        });
        for (const { level, index, hash } of added) {
          const name = `${String(level)}/${String(index)}`;
          expect(stored.has(name)).toBe(false);
          stored.set(name, hash);
        }
        size = Math.min(size + batch, leaves.length);
        const read = (level: number, index: number): Uint8Array => stored.get(`${String(level)}/${String(index)}`)!;
        expect(toHex(await treeRoot(size, read))).toBe(toHex(definedRoot(leaves.slice(0, size))));
        if (size > 0) {
          const index = size >> 1;
          expect(
            verifyInclusion(
              leaves[index]!,
              index,
              size,
              await inclusionProof(index, size, read),
              await treeRoot(size, read),
            ),
          ).toBe(true);
        }
      }
    }),
    { numRuns: 30 },
  );
}, 60_000);

test('a reader sees every node of a proof before it must answer one', async () => {
  const asked: { level: number; index: number; resolve: (hash: Uint8Array) => void }[] = [];
  const pending = inclusionProof(
    37,
    100,
    (level, index) => new Promise((resolve) => asked.push({ level, index, resolve })),
  );
  await Promise.resolve();
  expect(asked.length).toBeGreaterThan(6);
  for (const { level, index, resolve } of asked) resolve(reader(100)(level, index));
  expect(verifyInclusion(leaves[37]!, 37, 100, await pending, definedRoot(leaves.slice(0, 100)))).toBe(true);
});

test('asking for what is not in the tree is a mistake of the program', () => {
  expect(() => inclusionProof(5, 5, reader(5))).toThrow(RangeError);
  expect(() => inclusionProof(-1, 5, reader(5))).toThrow(RangeError);
  expect(() => consistencyProof(6, 5, reader(5))).toThrow(RangeError);
  return expect(newNodes(-1, [], reader(5))).rejects.toThrow(RangeError);
});

test('no made-up proof makes a check throw or pass', () => {
  const hash = fc.uint8Array({ minLength: 0, maxLength: 40 });
  const count = fc.oneof(fc.bigInt({ min: -5n, max: 2n ** 70n }), fc.double(), fc.integer({ min: -2, max: 300 }));
  fc.assert(
    fc.property(hash, count, count, fc.array(hash, { maxLength: 70 }), hash, (leaf, a, b, proof, root) => {
      expect(verifyInclusion(leaf, a, b, proof, root)).toBe(false);
      expect(verifyConsistency(a, leaf, b, root, proof)).toBe(false);
    }),
    { numRuns: 300 },
  );
});

test('a flipped bit of a proof never verifies', async () => {
  const size = 100;
  const root = definedRoot(leaves.slice(0, size));
  const proof = await inclusionProof(37, size, reader(size));
  const extension = await consistencyProof(37, size, reader(size));
  const old = definedRoot(leaves.slice(0, 37));
  fc.assert(
    fc.property(fc.nat(), fc.nat(31), fc.integer({ min: 1, max: 255 }), (which, at, change) => {
      const flip = (hashes: readonly Uint8Array[]): Uint8Array[] =>
        hashes.map((hash, i) =>
          i === which % hashes.length ? hash.map((byte, k) => (k === at ? byte ^ change : byte)) : hash,
        );
      expect(verifyInclusion(leaves[37]!, 37, size, flip(proof), root)).toBe(false);
      expect(verifyConsistency(37, old, size, root, flip(extension))).toBe(false);
    }),
    { numRuns: 200 },
  );
  expect(fromHex(toHex(root))).toEqual(root);
});
