import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { verifySignatures } from '@nd7/signing';
import {
  consistencyProof,
  emptyRoot,
  formatCheckpoint,
  formatNote,
  leafHash,
  newNodes,
  parseNote,
  parseVkey,
  treeRoot,
  verifyNote,
  type TreeNode,
} from '@nd7/tlog';
import fc from 'fast-check';
import { readerOf } from '../sequence/nodes.js';
import { ORIGIN, temporaryFolder } from '../sequence/log.fixture.js';
import { EmbeddedSigner, provisionFiles } from './embedded.js';
import type { SignRequest } from './signer.js';

/** A tree in memory, and what a signer is asked for about it. */
async function treeOf(
  leaves: number,
  seed = 'leaf',
): Promise<{ root(size: number): Promise<Uint8Array>; request(from: number, to: number): Promise<SignRequest> }> {
  const hashes = Array.from({ length: leaves }, (_, i) => leafHash(Buffer.from(`${seed} ${String(i)}`)));
  const nodes: TreeNode[] = await newNodes(0, hashes, readerOf([]));
  const read = readerOf(nodes);
  return {
    root: (size) => treeRoot(size, read),
    request: async (from, to) => ({
      origin: ORIGIN,
      size: to,
      root: await treeRoot(to, read),
      proof: await consistencyProof(from, to, read),
    }),
  };
}

async function signerWithKey(): Promise<{ folder: string; signer: EmbeddedSigner; vkey: string }> {
  const folder = join(temporaryFolder(), 'signer');
  const signer = EmbeddedSigner.open(folder);
  const state = await signer.provision(ORIGIN);
  if (!state.ok) throw new Error(state.message);
  return { folder, signer, vkey: state.vkeys[0]! };
}

const files = (folder: string): string => join(folder, 'vault.test_acme');
const stored = (folder: string): string => readFileSync(join(files(folder), 'state'), 'utf8');

describe('an embedded signer', () => {
  it('makes a key and an empty state once, readable by nobody else', async () => {
    const { folder, signer, vkey } = await signerWithKey();
    expect(await signer.provision(ORIGIN)).toEqual({ ok: true, last: { size: 0, root: emptyRoot }, vkeys: [vkey] });
    expect(readdirSync(files(folder)).sort()).toEqual(['key-1.pem', 'state']);
    for (const name of ['key-1.pem', 'state']) expect(statSync(join(files(folder), name)).mode & 0o777).toBe(0o600);
    for (const path of [folder, files(folder)]) expect(statSync(path).mode & 0o777).toBe(0o700);
    await signer.close();
  });

  it('signs what extends the last, with a note that verifies, and has it on disk by then', async () => {
    const { folder, signer, vkey } = await signerWithKey();
    const tree = await treeOf(20);
    let last = 0;
    for (const size of [1, 2, 7, 8, 20]) {
      const answer = await signer.sign(await tree.request(last, size));
      if (!answer.ok) throw new Error(answer.message);
      expect(stored(folder)).toBe(
        `nd7/signer-state/v1\n${formatCheckpoint({ origin: ORIGIN, size, root: await tree.root(size) })}`,
      );
      const note = parseNote(
        formatNote(formatCheckpoint({ origin: ORIGIN, size, root: await tree.root(size) }), answer.lines),
      )!;
      expect((await verifyNote(note, [parseVkey(vkey)!], verifySignatures)).good).toHaveLength(1);
      // The same again: the same bytes, whatever proof comes with it.
      expect(await signer.sign({ ...(await tree.request(size, size)), proof: [] })).toEqual(answer);
      last = size;
    }
    await signer.close();
  });

  it('refuses less, another root, and what does not extend; its state stays', async () => {
    const { folder, signer } = await signerWithKey();
    const [tree, other] = [await treeOf(20), await treeOf(20, 'other')];
    await signer.sign(await tree.request(0, 10));
    const before = stored(folder);
    const last = { size: 10, root: await tree.root(10) };
    expect(await signer.sign(await tree.request(0, 9))).toMatchObject({ ok: false, refusal: 'behind', last });
    expect(await signer.sign(await other.request(10, 10))).toMatchObject({ ok: false, refusal: 'fork', last });
    expect(await signer.sign(await other.request(10, 12))).toMatchObject({
      ok: false,
      refusal: 'not-consistent',
      last,
    });
    expect(await signer.sign({ ...(await tree.request(10, 12)), proof: [] })).toMatchObject({
      ok: false,
      refusal: 'not-consistent',
    });
    expect(await signer.sign(await tree.request(9, 12))).toMatchObject({ ok: false, refusal: 'not-consistent' });
    for (const bad of [
      { size: -1 },
      { size: 1.5 },
      { size: 0 },
      { size: NaN },
      { size: 2 ** 53 },
      { root: new Uint8Array(31) },
      { proof: Array(64).fill(emptyRoot) as Uint8Array[] },
      { proof: [new Uint8Array(3)] },
    ])
      expect(await signer.sign({ ...(await tree.request(10, 12)), ...bad })).toMatchObject({
        ok: false,
        refusal: 'bad-request',
      });
    expect(await signer.sign({ ...(await tree.request(10, 12)), origin: 'vault.test/nobody' })).toMatchObject({
      ok: false,
      refusal: 'no-key',
    });
    expect(await signer.sign({ ...(await tree.request(10, 12)), origin: '../../etc/passwd' })).toMatchObject({
      ok: false,
      refusal: 'bad-request',
    });
    expect(stored(folder)).toBe(before);
    await signer.close();
  });

  it('never signs two histories, whatever it is asked in whatever order, over restarts', async () => {
    const [a, b] = [await treeOf(12, 'a'), await treeOf(12, 'b')];
    const ask = fc.record({
      tree: fc.constantFrom(a, b),
      from: fc.nat({ max: 12 }),
      to: fc.integer({ min: 1, max: 12 }),
      restart: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(ask, { minLength: 1, maxLength: 12 }), async (asks) => {
        const folder = join(temporaryFolder(), 'signer');
        let signer = EmbeddedSigner.open(folder);
        await signer.provision(ORIGIN);
        const signed: { tree: typeof a; size: number }[] = [];
        for (const { tree, from, to, restart } of asks) {
          const answer = await signer.sign(await tree.request(Math.min(from, to), to));
          if (answer.ok) signed.push({ tree, size: to });
          if (!restart) continue;
          await signer.close();
          signer = EmbeddedSigner.open(folder);
        }
        await signer.close();
        rmSync(folder, { recursive: true });
        // All of one tree, and never back.
        expect(new Set(signed.map(({ tree }) => tree)).size).toBeLessThanOrEqual(1);
        expect(signed.map(({ size }) => size)).toEqual(signed.map(({ size }) => size).sort((x, y) => x - y));
      }),
      { numRuns: 25 },
    );
  }, 60_000);

  it('answers one request of a log after the other', async () => {
    const { signer } = await signerWithKey();
    const [tree, other] = [await treeOf(8), await treeOf(8, 'other')];
    const answers = await Promise.all(
      [tree, other, tree, other].map(async (one) => signer.sign(await one.request(0, 8))),
    );
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true, false]);
    await signer.close();
  });

  it('has its folder alone', async () => {
    const { folder, signer } = await signerWithKey();
    expect(() => EmbeddedSigner.open(folder)).toThrow(expect.objectContaining({ code: 'locked' }));
    await signer.close();
    await EmbeddedSigner.open(folder).close();
  });

  it('refuses a folder that others can enter, and says how to mend it', () => {
    const folder = join(temporaryFolder(), 'signer');
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    expect(() => EmbeddedSigner.open(folder)).toThrow(
      expect.objectContaining({
        code: 'folder',
        message: `others have rights to the signer's folder ${folder}: chmod 700 ${folder}`,
      }),
    );
  });

  it('stops signing when its folder was replaced under it', async () => {
    const { folder, signer } = await signerWithKey();
    const tree = await treeOf(4);
    await signer.sign(await tree.request(0, 2));
    renameSync(folder, `${folder}-old`);
    mkdirSync(folder, { mode: 0o700 });
    expect(await signer.sign(await tree.request(2, 3))).toMatchObject({ ok: false, refusal: 'failed' });
    await signer.close();
  });

  it('signs nothing more after its state could not be stored, until it is started again', async () => {
    const { folder, signer } = await signerWithKey();
    const tree = await treeOf(4);
    await signer.sign(await tree.request(0, 2));
    renameSync(join(files(folder), 'state'), join(folder, 'aside'));
    mkdirSync(join(files(folder), 'state', 'in-the-way'), { recursive: true });
    expect(await signer.sign(await tree.request(2, 3))).toMatchObject({ ok: false, refusal: 'failed' });
    rmSync(join(files(folder), 'state'), { recursive: true });
    renameSync(join(folder, 'aside'), join(files(folder), 'state'));
    expect(await signer.sign(await tree.request(2, 3))).toMatchObject({ ok: false, refusal: 'failed' });
    await signer.close();
    const again = EmbeddedSigner.open(folder);
    expect(await again.sign(await tree.request(2, 3))).toMatchObject({ ok: true });
    await again.close();
  });

  describe('without its state', () => {
    it.each([
      [
        'lost',
        (path: string) => {
          rmSync(path);
        },
      ],
      [
        'damaged',
        (path: string) => {
          writeFileSync(path, 'nd7/signer-state/v1\nvault.test/acme\n1');
        },
      ],
      [
        "another log's",
        (path: string) => {
          writeFileSync(path, readFileSync(path, 'utf8').replace('acme', 'evil'));
        },
      ],
    ])('signs nothing when it is %s, and a person adopts a head', async (_, spoil) => {
      const { folder, signer } = await signerWithKey();
      const [tree, other] = [await treeOf(8), await treeOf(8, 'other')];
      await signer.sign(await tree.request(0, 5));
      await signer.close();
      spoil(join(files(folder), 'state'));
      const again = EmbeddedSigner.open(folder);
      expect(await again.sign(await tree.request(5, 6))).toMatchObject({ ok: false, refusal: 'no-state' });
      expect(await again.provision(ORIGIN)).toMatchObject({ ok: false, refusal: 'no-state' });
      expect(await again.sign(await other.request(0, 6))).toMatchObject({ ok: false, refusal: 'no-state' });
      await expect(
        again.adopt(ORIGIN, { size: 5, root: await tree.root(5) }, { size: 6, root: await tree.root(6) }),
      ).rejects.toMatchObject({ code: 'not-adopted' });
      await again.adopt(ORIGIN, undefined, { size: 5, root: await tree.root(5) });
      expect(await again.sign(await other.request(5, 6))).toMatchObject({ ok: false, refusal: 'not-consistent' });
      expect(await again.sign(await tree.request(5, 6))).toMatchObject({ ok: true });
      await again.close();
    });

    it('makes no new key when the key is what was lost', async () => {
      const { folder, signer } = await signerWithKey();
      await signer.sign(await (await treeOf(2)).request(0, 2));
      await signer.close();
      rmSync(join(files(folder), 'key-1.pem'));
      const again = EmbeddedSigner.open(folder);
      expect(await again.provision(ORIGIN)).toMatchObject({ ok: false, refusal: 'no-key' });
      expect(existsSync(join(files(folder), 'key-1.pem'))).toBe(false);
      await again.close();
    });
  });

  it('refuses a key file that others can read, naming it', async () => {
    const { folder, signer } = await signerWithKey();
    await signer.close();
    const path = join(files(folder), 'key-1.pem');
    chmodSync(path, 0o640);
    const again = EmbeddedSigner.open(folder);
    const state = await again.state(ORIGIN);
    expect(state).toMatchObject({ ok: false, refusal: 'no-key' });
    expect(state.ok ? '' : state.message).toContain(`chmod 600 ${path}`);
    await again.close();
  });

  it('finds a log that was made beside it while it ran', async () => {
    const { folder, signer } = await signerWithKey();
    const origin = 'vault.test/later';
    expect(await signer.state(origin)).toMatchObject({ ok: false, refusal: 'no-key' });
    await Promise.all([provisionFiles(folder, origin), provisionFiles(folder, origin), provisionFiles(folder, origin)]);
    expect(await signer.state(origin)).toMatchObject({ ok: true, last: { size: 0 } });
    await signer.close();
  });

  it('goes on with two keys after a rotation, and with the new one alone when the old is retired', async () => {
    const { folder, signer, vkey } = await signerWithKey();
    const tree = await treeOf(9);
    await signer.sign(await tree.request(0, 3));
    const text = (from: string, to: string): Uint8Array => Buffer.from(`${from} → ${to}`);
    const rotation = await signer.rotate(ORIGIN, text);
    expect(rotation.old).toBe(vkey);
    expect(await signer.rotate(ORIGIN, text)).toEqual(rotation);
    const items = [rotation.old, rotation.new].map((one, i) => ({
      key: parseVkey(one)!.key,
      message: text(rotation.old, rotation.new),
      signature: rotation.signatures[i]!,
    }));
    expect(await verifySignatures(items)).toEqual([true, true]);

    const both = await signer.sign(await tree.request(3, 5));
    expect(both.ok && both.lines).toHaveLength(2);
    expect(await signer.retire(ORIGIN)).toEqual([vkey]);
    expect(readdirSync(files(folder)).filter((name) => name.endsWith('.pem'))).toEqual(['key-2.pem']);
    const one = await signer.sign(await tree.request(5, 9));
    expect(one.ok && both.ok && one.lines.length === 1 && one.lines[0]!.split(' ')[1] === ORIGIN).toBe(true);
    expect(await signer.retire(ORIGIN)).toEqual([]);
    await signer.close();
  });
});
