import { fromBase64, fromHex, toBase64 } from '@nd7/entry';
import fc from 'fast-check';
import { generateKeyPairSync, sign } from 'node:crypto';
import type { Signer, VerifierKey } from './index.js';
import {
  formatNote,
  formatVkey,
  keyId,
  nobleVerifier,
  parseNote,
  parseVkey,
  signatureLine,
  signNote,
  verifyNote,
} from './index.js';

/** C2SP signed-note, "Example". */
const VKEY = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const NOTE =
  'This is an example message.\n\n\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
const example = parseVkey(VKEY)!;

function signer(): Signer & { vkey(name: string): VerifierKey } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32));
  return {
    publicKey: Buffer.from(raw).toString('hex'),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
    vkey: (name) => parseVkey(formatVkey(name, 1, raw))!,
  };
}

test('the example of the C2SP document verifies, and only as it stands', async () => {
  const note = parseNote(NOTE)!;
  expect(note.text).toBe('This is an example message.\n');
  expect(await verifyNote(note, [example], nobleVerifier)).toEqual({ good: [example], bad: [] });
  expect(await verifyNote({ ...note, text: 'This is an example message!\n' }, [example], nobleVerifier)).toEqual({
    good: [],
    bad: [example],
  });
  expect(formatVkey(example.name, 1, example.key)).toBe(VKEY);
  expect(keyId('example.com/foo', 1, example.key)).toBe(0x530d903a);
});

test('a vkey that is not exactly one is none', () => {
  const [name, id, key] = VKEY.split('+') as [string, string, string];
  const raw = fromBase64(key)!;
  const bad = [
    '',
    name,
    `${name}+${id}`,
    `${name}+${id}+`,
    `${name}+${id.toUpperCase()}+${key}`,
    `${name}+530d903b+${key}`,
    `${name} x+${id}+${key}`,
    `${name}x+${id}+${key}`,
    `+${id}+${key}`,
    `${VKEY}\n`,
    ` ${VKEY}`,
    `${name}+${id}+${key.slice(0, -1)}l`,
    `${name}+${id}+${toBase64(raw.subarray(0, 32))}`,
    `${name}+${id}+${toBase64(new Uint8Array([2, ...raw.subarray(1)]))}`,
  ];
  for (const text of bad) expect(parseVkey(text)).toBeUndefined();
  const cosigner = parseVkey(formatVkey('w.example/1', 4, example.key))!;
  expect([cosigner.type, cosigner.id]).toEqual([4, keyId('w.example/1', 4, example.key)]);
  expect(() => formatVkey('a b', 1, example.key)).toThrow(RangeError);
  expect(() => formatVkey('a', 1, example.key.subarray(1))).toThrow(RangeError);
});

test('base64 with "+" in a vkey is no separator', () => {
  const key = fromHex('fb'.repeat(32))!;
  const text = formatVkey('n', 1, key);
  expect(text.split('+').length).toBeGreaterThan(3);
  expect(parseVkey(text)?.key).toEqual(key);
});

test('the text goes to the last empty line', async () => {
  const s = signer();
  for (const text of ['a\n', 'a\n\nb\n', '\n', '\n\n\n', 'a\n\n\u2014 looks like a signature AAAAAAA=\n']) {
    const note = parseNote(await signNote(text, 'n.example', s))!;
    expect(note.text).toBe(text);
    expect(await verifyNote(note, [s.vkey('n.example')], nobleVerifier)).toEqual({
      good: [s.vkey('n.example')],
      bad: [],
    });
  }
});

test('what is no signed note is none', () => {
  const line = signatureLine('n', 1, new Uint8Array(64));
  const bad = [
    '',
    '\n',
    '\n\n',
    'a\n',
    'a\n\n',
    `a\n${line}\n`,
    `a\n\n${line}`,
    `a\n\n${line}\n\n`,
    `a\r\n\r\n${line}\n`,
    `a\n\n${line}\r\n`,
    `a\tb\n\n${line}\n`,
    `a\u0000\n\n${line}\n`,
    `a\ud800\n\n${line}\n`,
    `a\n\n${line}\njunk\n`,
    `a\n\n${line.replace('\u2014', '-')}\n`,
    `a\n\n${line.replace(' n ', '  ')}\n`,
    `a\n\n${line.replace(' n ', ' n  ')}\n`,
    `a\n\n${line.replace(' n ', ' n+n ')}\n`,
    `a\n\n${line.replace(' n ', ' n\u00a0n ')}\n`,
    `a\n\n${line.replace(' n ', ' \u00e9 ')}\n`,
    `a\n\n${line}=\n`,
    `a\n\n\u2014 n ${toBase64(new Uint8Array(4))}\n`,
    `a\n\n\u2014 n \n`,
  ];
  for (const text of bad) expect(parseNote(text)).toBeUndefined();
  expect(parseNote(`a\n\n\u2014 n ${toBase64(new Uint8Array(5))}\n`)).toBeDefined();
});

test('a known key is known by name and id; its bad line is told beside its good one', async () => {
  const [a, b] = [signer(), signer()];
  const note = parseNote(await signNote('text\n', 'n', a))!;
  const key = a.vkey('n');
  const wrong = { ...note.signatures[0]!, signature: new Uint8Array(64), line: 'wrong' };
  // Unknown keys: the same id under another name, the same name with another id.
  const strangers = [
    { ...wrong, name: 'm' },
    { ...wrong, id: key.id ^ 1 },
  ];
  expect(
    await verifyNote({ ...note, signatures: [...strangers, ...note.signatures] }, [key, b.vkey('n')], nobleVerifier),
  ).toEqual({ good: [key], bad: [] });
  expect(await verifyNote({ ...note, signatures: [...note.signatures, wrong] }, [key], nobleVerifier)).toEqual({
    good: [key],
    bad: [key],
  });
  expect(
    await verifyNote({ ...note, signatures: [{ ...wrong, signature: new Uint8Array(1) }] }, [key], nobleVerifier),
  ).toEqual({ good: [], bad: [key] });
  expect(await verifyNote(note, [], nobleVerifier)).toEqual({ good: [], bad: [] });
  // A key that only cosigns signs no note.
  expect(await verifyNote(note, [parseVkey(formatVkey('n', 4, key.key))!], nobleVerifier)).toEqual({
    good: [],
    bad: [],
  });
});

test('a line repeated ten thousand times is verified once', async () => {
  const s = signer();
  const note = parseNote(await signNote('text\n', 'n', s))!;
  let asked = 0;
  const verdict = await verifyNote(
    { ...note, signatures: Array.from({ length: 10_000 }, () => note.signatures[0]!) },
    [s.vkey('n')],
    (items) => {
      asked += items.length;
      return nobleVerifier(items);
    },
  );
  expect([verdict.good.length, verdict.bad.length, asked]).toEqual([1, 0, 1]);
});

test('making a note refuses what would be none', () => {
  expect(() => formatNote('no end', ['x'])).toThrow(RangeError);
  expect(() => formatNote('end\n', [])).toThrow(RangeError);
});

test('any flipped byte of a note is refused or leaves no good signature of the key', async () => {
  const bytes = new TextEncoder().encode(NOTE);
  const decoder = new TextDecoder('utf-8');
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const flipped = Uint8Array.from(bytes);
      flipped[at]! ^= change;
      const note = parseNote(decoder.decode(flipped));
      expect(note === undefined ? [] : (await verifyNote(note, [example], nobleVerifier)).good).toEqual([]);
    }),
    { numRuns: 150 },
  );
}, 60_000);

test('no text makes the parsers throw', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\n', '\n\n', '\u2014 ', ' ', '+', 'AAAAAAA=', VKEY, NOTE, '\ud800'),
    ),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(pieces, (parts) => {
      const text = parts.join('');
      const note = parseNote(text);
      if (note !== undefined)
        expect(
          formatNote(
            note.text,
            note.signatures.map(({ line }) => line),
          ),
        ).toBe(text);
      const key = parseVkey(text);
      if (key !== undefined) expect(formatVkey(key.name, key.type, key.key)).toBe(text);
    }),
    { numRuns: 500 },
  );
});
