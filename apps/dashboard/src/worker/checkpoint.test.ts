import { fromHex, toHex, utf8 } from '@nd7/entry';
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import {
  formatCheckpoint,
  formatVkey,
  leafHash,
  newNodes,
  nobleVerifier,
  parseTilePath,
  type Signer,
  signNote,
  treeRoot,
} from '@nd7/tlog';
import fc from 'fast-check';
import { checkCheckpoint, type TileSource } from './checkpoint.js';

const ORIGIN = 'vault.example/acme';

function signer(): Signer {
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const publicKey = toHex(createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-32));
  return { publicKey, sign: (message) => new Uint8Array(sign(null, message, key)) };
}

const mine = signer();
const vkey = formatVkey(ORIGIN, 1, fromHex(mine.publicKey) ?? new Uint8Array());

/** A log of some leaves, and its tiles. `salt` makes another log. */
class Log {
  readonly nodes = new Map<string, Uint8Array>();
  asked = 0;

  static async of(size: number, salt = ''): Promise<Log> {
    const log = new Log();
    const leaves = Array.from({ length: size }, (_, i) => leafHash(utf8(`${salt}${String(i)}`)));
    for (const node of await newNodes(0, leaves, log.read))
      log.nodes.set(`${String(node.level)}/${String(node.index)}`, node.hash);
    return log;
  }

  readonly read = (level: number, index: number): Uint8Array =>
    this.nodes.get(`${String(level)}/${String(index)}`) ?? new Uint8Array(32);

  readonly tiles: TileSource = (path) => {
    this.asked += 1;
    const address = parseTilePath(path);
    if (address === undefined || address.level === 'entries') throw new Error(`no tile path: ${path}`);
    const { level, n, width } = address;
    return Promise.resolve(
      new Uint8Array(Buffer.concat(Array.from({ length: width }, (_, i) => this.read(level * 8, n * 256 + i)))),
    );
  };

  root(size: number): Promise<Uint8Array> {
    return treeRoot(size, this.read);
  }

  async note(size: number, by: Signer = mine): Promise<string> {
    return signNote(formatCheckpoint({ origin: ORIGIN, size, root: await this.root(size) }), ORIGIN, by);
  }
}

const seen = async (log: Log, size: number) => ({ size, root: toHex(await log.root(size)) });
const judge = (
  note: string,
  before?: { size: number; root: string },
  tiles: TileSource = () => Promise.resolve(undefined),
) => checkCheckpoint({ note, vkey, before }, nobleVerifier, tiles);

describe('a checkpoint', () => {
  let log: Log;
  beforeAll(async () => {
    log = await Log.of(700);
  });

  it('is taken when the pinned key signed it and nothing was seen before', async () => {
    expect(await judge(await log.note(700))).toMatchObject({ ok: true, against: 'first', size: 700 });
  });

  it('is taken again', async () => {
    expect(await judge(await log.note(700), await seen(log, 700))).toMatchObject({ ok: true, against: 'same' });
  });

  it('is taken when tiles show that it extends what was seen', async () => {
    expect(await judge(await log.note(700), await seen(log, 300), log.tiles)).toMatchObject({
      ok: true,
      against: 'extends',
    });
    expect(log.asked).toBeLessThan(8);
  });

  it('is signed but not shown to extend, where the tiles cannot be had', async () => {
    expect(await judge(await log.note(700), await seen(log, 300))).toMatchObject({ ok: true, against: 'unproved' });
  });

  it.each([
    ['bad-checkpoint', async () => judge('nonsense')],
    ['bad-checkpoint', async () => judge((await log.note(700)).replace(`${ORIGIN}\n`, `${ORIGIN}\nmore\n`))],
    [
      'wrong-origin',
      async () =>
        judge(
          await signNote(
            formatCheckpoint({ origin: 'vault.example/other', size: 1, root: await log.root(1) }),
            'vault.example/other',
            mine,
          ),
        ),
    ],
    ['bad-signature', async () => judge(await log.note(700, signer()))],
    ['bad-signature', async () => judge((await log.note(700)).replace('\n700\n', '\n701\n'))],
    ['shrank', async () => judge(await log.note(300), await seen(log, 700))],
    ['split', async () => judge(await (await Log.of(700, 'x')).note(700), await seen(log, 700))],
    [
      'not-consistent',
      async () => judge(await (await Log.of(701, 'x')).note(701), await seen(log, 700), (await Log.of(701, 'x')).tiles),
    ],
    [
      'bad-key',
      async () =>
        checkCheckpoint({ note: await log.note(700), vkey: vkey.replace('+', '-') }, nobleVerifier, log.tiles),
    ],
  ])('is refused: %s', async (reason, ask) => {
    expect(await ask()).toMatchObject({ ok: false, reason });
  });

  it('extends every tree before it, and no other', async () => {
    const other = await Log.of(700, 'x');
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 699 }), fc.integer({ min: 1, max: 699 }), async (a, b) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b) + 1];
        expect(await judge(await log.note(more), await seen(log, less), log.tiles)).toMatchObject({
          ok: true,
          against: 'extends',
        });
        expect(await judge(await log.note(more), await seen(other, less), log.tiles)).toMatchObject({
          ok: false,
          reason: 'not-consistent',
        });
      }),
      { numRuns: 12 },
    );
  });

  it('is refused where the tiles do not lead from the old tree to the new one', async () => {
    const lying: TileSource = async (path) => (await log.tiles(path))?.map((byte) => byte ^ 1);
    expect(await judge(await log.note(700), await seen(log, 300), lying)).toMatchObject({
      ok: false,
      reason: 'not-consistent',
    });
  });
});
