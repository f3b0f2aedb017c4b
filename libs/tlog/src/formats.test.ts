import { fromBase64, toHex, utf8 } from '@nd7/entry';
import fc from 'fast-check';
import { generateKeyPairSync, sign } from 'node:crypto';
import type { Signer, VerifierKey } from './index.js';
import {
  cosign,
  cosignatureMessage,
  decodeEntryBundle,
  encodeEntryBundle,
  formatCheckpoint,
  formatNote,
  formatVkey,
  hasQuorum,
  isOrigin,
  nobleVerifier,
  parseCheckpoint,
  parseNote,
  parsePolicy,
  parseTilePath,
  parseVkey,
  signNote,
  sizeOf,
  tilePath,
  tileWidth,
  verifyCosignatures,
  verifyNote,
} from './index.js';

interface Actor extends Signer {
  vkey(name: string, type: 1 | 4): VerifierKey;
}

function actor(): Actor {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32));
  return {
    publicKey: toHex(raw),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
    vkey: (name, type) => parseVkey(formatVkey(name, type, raw))!,
  };
}

const ROOT = 'HgBUdwHn9V49pOcpIsws+3QI33ArgQnJxJ7f1BaVIuc=';
const root = fromBase64(ROOT)!;

describe('checkpoint', () => {
  test('three lines, both ways', () => {
    const text = `vault.example/acme\n73\n${ROOT}\n`;
    const checkpoint = parseCheckpoint(text)!;
    expect(checkpoint).toEqual({ origin: 'vault.example/acme', size: 73, root });
    expect(formatCheckpoint(checkpoint)).toBe(text);
    expect(parseCheckpoint(`vault.example/acme\n0\n${ROOT}\n`)?.size).toBe(0);
  });

  test('a size of 16 digits loses nothing', () => {
    for (const size of ['9007199254740991', '9007199254740992', '9007199254740993', '9999999999999999']) {
      const text = `v.example/a\n${size}\n${ROOT}\n`;
      const checkpoint = parseCheckpoint(text)!;
      expect(String(sizeOf(checkpoint))).toBe(size);
      expect(formatCheckpoint(checkpoint)).toBe(text);
      expect('exactSize' in checkpoint).toBe(size !== '9007199254740991');
    }
  });

  test('anything else is none', () => {
    const good = `v.example/a\n1\n${ROOT}\n`;
    const bad = [
      '',
      good.slice(0, -1),
      `${good}extension\n`,
      `${good}\n`,
      ` ${good}`,
      good.replace('\n1\n', '\n01\n'),
      good.replace('\n1\n', '\n+1\n'),
      good.replace('\n1\n', '\n-1\n'),
      good.replace('\n1\n', '\n1.0\n'),
      good.replace('\n1\n', '\n10000000000000000\n'),
      good.replace('\n1\n', '\n\u0661\n'),
      good.replaceAll('\n', '\r\n'),
      good.replace('uc=', 'ud='),
      good.replace('=', ''),
      good.replace('v.example/a', 'V.example/a'),
      good.replace('v.example/a', 'v.example'),
      good.replace('v.example/a', 'v.example/a/b'),
      good.replace('v.example/a', `${'v'.repeat(127)}/a`),
    ];
    for (const text of bad) expect(parseCheckpoint(text)).toBeUndefined();
    expect(isOrigin(`${'v'.repeat(126)}/a`)).toBe(true);
    expect(isOrigin('v.example/a\n')).toBe(false);
    expect(() => formatCheckpoint({ origin: 'V/a', size: 1, root })).toThrow(RangeError);
    expect(() => formatCheckpoint({ origin: 'v/a', size: 1.5, root })).toThrow(RangeError);
    expect(() => formatCheckpoint({ origin: 'v/a', size: 1, root: root.subarray(1) })).toThrow(RangeError);
  });
});

describe('tiles', () => {
  // The examples of C2SP tlog-tiles.
  test.each([
    [0, 1234067, 256, 'tile/0/x001/x234/067'],
    [0, 0, 256, 'tile/0/000'],
    [1, 273, 112, 'tile/1/273.p/112'],
    [63, 999, 1, 'tile/63/999.p/1'],
    ['entries', 1000, 255, 'tile/entries/x001/000.p/255'],
    [0, 999_999_999_999_999, 256, 'tile/0/x999/x999/x999/x999/999'],
  ] as const)('%s/%d of width %d is %s', (level, n, width, path) => {
    expect(tilePath(level, n, width)).toBe(path);
    expect(parseTilePath(path)).toEqual({ level, n, width });
  });

  test('one path for each tile', () => {
    const bad = [
      '',
      'tile/0/0',
      'tile/0/00',
      'tile/0/0000',
      'tile/00/000',
      'tile/64/000',
      'tile/0/x000/001',
      'tile/0/001/002',
      'tile/0/x001',
      'tile/0/000.p/0',
    ]
      .concat([
        'tile/0/000.p/256',
        'tile/0/000.p/01',
        'tile/0/000.p/',
        'tile/0/000/',
        '/tile/0/000',
        'tile/data/000',
        'tile/0/-01',
        'tile/0/x001/x002/',
        'tile/0/000\n',
      ])
      .concat(['tile/0/x999/x999/x999/x999/x999/999', 'tile/0/x00a/000', 'tile/0/../000']);
    for (const path of bad) expect(parseTilePath(path)).toBeUndefined();
    for (const [level, n, width] of [
      [64, 0, 256],
      [-1, 0, 256],
      [0, -1, 256],
      [0, 1.5, 256],
      [0, 0, 0],
      [0, 0, 257],
      [0, 2 ** 53, 256],
    ] as const) {
      expect(() => tilePath(level, n, width)).toThrow(RangeError);
    }
  });

  test('a tree of 70,000 leaves has the tiles that the document counts', () => {
    const widths = (level: number, upTo: number): number[] =>
      Array.from({ length: upTo }, (_, n) => tileWidth(level, n, 70_000));
    expect(widths(0, 275)).toEqual([...new Array<number>(273).fill(256), 112, 0]);
    expect(widths(1, 3)).toEqual([256, 17, 0]);
    expect(widths(2, 2)).toEqual([1, 0]);
    expect(widths(3, 1)).toEqual([0]);
    expect(tileWidth('entries', 273, 70_000)).toBe(112);
    expect([tileWidth(0, 0, 256), tileWidth(1, 0, 256), tileWidth(0, 1, 256)]).toEqual([256, 1, 0]);
  });

  test('bundles, both ways', () => {
    const leaf = fc.uint8Array({ maxLength: 600 });
    fc.assert(
      fc.property(fc.array(leaf, { maxLength: 256 }), (leaves) => {
        expect(decodeEntryBundle(encodeEntryBundle(leaves))).toEqual(leaves);
      }),
      { numRuns: 30 },
    );
    expect(encodeEntryBundle([utf8('ab'), utf8('')])).toEqual(Uint8Array.of(0, 2, 0x61, 0x62, 0, 0));
    const whole = encodeEntryBundle([utf8('abc'), utf8('d')]);
    for (let cut = 1; cut < whole.length; cut++)
      if (cut !== 5) expect(decodeEntryBundle(whole.subarray(0, cut))).toBeUndefined();
    expect(decodeEntryBundle(new Uint8Array(2 * 257))).toBeUndefined();
    expect(() => encodeEntryBundle([new Uint8Array(65_536)])).toThrow(RangeError);
    expect(() => encodeEntryBundle(new Array<Uint8Array>(257).fill(root))).toThrow(RangeError);
  });
});

describe('cosignature/v1', () => {
  test('the message is the one of C2SP tlog-cosignature', () => {
    const text = 'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n';
    expect(new TextDecoder().decode(cosignatureMessage(text, 1_679_315_147))).toBe(
      `cosignature/v1\ntime 1679315147\n${text}`,
    );
  });

  test("a cosignature stands beside the log's signature; a bad one counts as none", async () => {
    const [log, witness, other] = [actor(), actor(), actor()];
    const text = formatCheckpoint({ origin: 'v.example/a', size: 5, root });
    const signed = parseNote(await signNote(text, 'v.example/a', log))!;
    const line = await cosign(text, 'w.example/1', witness, 1_700_000_000);
    const note = parseNote(formatNote(text, [...signed.signatures.map((s) => s.line), line]))!;
    const keys = [witness.vkey('w.example/1', 4), other.vkey('w.example/2', 4)];
    expect(note.signatures[1]?.signature.length).toBe(72);
    expect(await verifyCosignatures(note, keys, nobleVerifier)).toEqual([{ by: keys[0], time: 1_700_000_000 }]);
    expect(await verifyNote(note, [log.vkey('v.example/a', 1)], nobleVerifier)).toMatchObject({ bad: [] });

    // The time is signed: moved by a second it is no cosignature any more.
    const moved = parseNote(formatNote(text, [line]))!;
    moved.signatures[0]!.signature[7]! ^= 1;
    expect(await verifyCosignatures(moved, keys, nobleVerifier)).toEqual([]);
    expect(await verifyCosignatures({ ...note, text: text.replace('\n5\n', '\n6\n') }, keys, nobleVerifier)).toEqual(
      [],
    );
    // The same key as a log's key signs no cosignature, and the other way round.
    expect(await verifyCosignatures(note, [witness.vkey('w.example/1', 1)], nobleVerifier)).toEqual([]);
    const short = {
      ...note,
      signatures: note.signatures.map((s) => ({ ...s, signature: s.signature.subarray(0, 71) })),
    };
    expect(await verifyCosignatures(short, keys, nobleVerifier)).toEqual([]);
    await expect(cosign(text, 'w.example/1', witness, 1.5)).rejects.toThrow(RangeError);
  });
});

describe('policy', () => {
  const key = (): VerifierKey => actor().vkey('w.example/x', 4);
  const [x1, x2, x3, y1, y2, y3] = [key(), key(), key(), key(), key(), key()];
  const log = actor().vkey('v.example/a', 1);
  // The example of C2SP tlog-policy, with keys.
  const text = `# a comment
log ${log.text} https://v.example/t/a/

witness X1 ${x1.text}
witness X2 ${x2.text}
\twitness   X3 ${x3.text} https://x3.example/  
group X-witnesses 2 X1 X2 X3

witness Y1 ${y1.text}
witness Y2 ${y2.text}
witness Y3 ${y3.text}
group Y-witnesses any Y1 Y2 Y3

group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
`;
  const policyOf = (source: string): Extract<ReturnType<typeof parsePolicy>, { ok: true }>['policy'] => {
    const parsed = parsePolicy(source);
    if (!parsed.ok) throw new Error(`line ${String(parsed.line)}: ${parsed.problem}`);
    return parsed.policy;
  };

  test('the example of the document', () => {
    const policy = policyOf(text);
    expect(policy.logs).toEqual([{ key: log, url: 'https://v.example/t/a/' }]);
    expect(policy.witnesses.map(({ name }) => name)).toEqual(['X1', 'X2', 'X3', 'Y1', 'Y2', 'Y3']);
    expect(policy.witnesses[2]?.url).toBe('https://x3.example/');
    expect(policy.groups.map(({ threshold }) => threshold)).toEqual([2, 1, 2]);
    expect(hasQuorum(policy, [x1, x2, y3])).toBe(true);
    expect(hasQuorum(policy, [x1, x2, x3, y1, y2, y3])).toBe(true);
    expect(hasQuorum(policy, [x1, y1, y2, y3])).toBe(false);
    expect(hasQuorum(policy, [x1, x2, x3])).toBe(false);
    expect(hasQuorum(policy, [x1, x1, y1])).toBe(false);
    expect(hasQuorum(policy, [])).toBe(false);
  });

  test('none, and a single witness', () => {
    expect(hasQuorum(policyOf('quorum none\n'), [])).toBe(true);
    expect(hasQuorum(policyOf('quorum none'), [])).toBe(true);
    const one = policyOf(`witness w ${x1.text}\nquorum w\n`);
    expect([hasQuorum(one, [x1]), hasQuorum(one, [x2]), hasQuorum(one, [])]).toEqual([true, false, false]);
  });

  test.each([
    ['', 1],
    [`witness w ${x1.text}\n`, 2],
    ['quorum none\nquorum none\n', 2],
    ['quorum\n', 1],
    ['quorum a b\n', 1],
    ['quorum w\n', 1],
    [`quorum w\nwitness w ${x1.text}\n`, 1],
    [`witness w ${x1.text}\nwitness w ${x2.text}\nquorum w\n`, 2],
    [`witness w ${x1.text}\nwitness v ${x1.text}\nquorum w\n`, 2],
    [`witness none ${x1.text}\nquorum none\n`, 1],
    [`witness w ${log.text}\nquorum w\n`, 1],
    [`witness w nonsense\nquorum w\n`, 1],
    [`log ${x1.text}\nquorum none\n`, 1],
    [`log ${log.text}\nlog ${log.text}\nquorum none\n`, 2],
    [`witness w ${x1.text}\ngroup g 0 w\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g 2 w\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g 01 w\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g any\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g any w w\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g any w\ngroup h any w\nquorum g\n`, 3],
    [`witness w ${x1.text}\ngroup g any g\nquorum g\n`, 2],
    [`witness w ${x1.text}\ngroup g any none\nquorum g\n`, 2],
    [`group g any w\nwitness w ${x1.text}\nquorum g\n`, 1],
    ['Quorum none\n', 1],
    ['quorum none\r\n', 1],
    ['quorum\u0000none\n', 1],
  ])('%j is refused at line %d', (source, line) => {
    const parsed = parsePolicy(source);
    expect(parsed).toMatchObject({ ok: false, line });
    if (!parsed.ok) expect(parsed.problem).not.toBe('');
  });

  test('a policy with ten thousand nested groups is evaluated without recursion', () => {
    const lines = [`witness w0 ${x1.text}`];
    for (let i = 1; i <= 10_000; i++) lines.push(`group w${String(i)} all w${String(i - 1)}`);
    const policy = policyOf([...lines, 'quorum w10000', ''].join('\n'));
    expect([hasQuorum(policy, [x1]), hasQuorum(policy, [x2])]).toEqual([true, false]);
  });
});

test('no bytes make a parser throw', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '\n',
        ' ',
        'tile/',
        'x001/',
        '.p/',
        'quorum',
        'group',
        'witness',
        'none',
        '0',
        'v.example/a',
        ROOT,
      ),
    ),
    { maxLength: 10 },
  );
  fc.assert(
    fc.property(pieces, fc.uint8Array({ maxLength: 100 }), (parts, bytes) => {
      const text = parts.join('');
      const checkpoint = parseCheckpoint(text);
      if (checkpoint !== undefined) expect(formatCheckpoint(checkpoint)).toBe(text);
      const tile = parseTilePath(text);
      if (tile !== undefined) expect(tilePath(tile.level, tile.n, tile.width)).toBe(text);
      parsePolicy(text);
      const leaves = decodeEntryBundle(bytes);
      if (leaves !== undefined) expect(encodeEntryBundle(leaves)).toEqual(bytes);
    }),
    { numRuns: 500 },
  );
});
