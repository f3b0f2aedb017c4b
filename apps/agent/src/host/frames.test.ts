import fc from 'fast-check';
import { end, flush, FrameError, FrameReader, launch, prepare, refuse, say, signal, type FromFront } from './frames.js';

const u32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32LE(value >>> 0, 4 * i));
  return bytes;
};
const texts = (...all: string[]): Buffer => Buffer.from(all.map((one) => `${one}\0`).join(''));

/** A request as native/front/src/frames.c makes it. */
function request(cwd: string, argv: string[], variables: string[], umask = 0o22, terminals = 0): Buffer {
  const body = Buffer.concat([
    u32(1, 1, terminals, umask, argv.length, variables.length),
    texts(cwd, ...argv, ...variables),
  ]);
  return Buffer.concat([u32(body.length), body]);
}

function inPieces(bytes: Buffer, cuts: readonly number[]): FromFront[] {
  const reader = new FrameReader();
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).flatMap((to, i) => reader.push(bytes.subarray(at[i], to)));
}

const word = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((text) => !text.includes('\0') && Buffer.from(text).toString() === text);
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/);

describe('frames of a front', () => {
  it('are read alike however they come', () => {
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        fc.dictionary(name, word, { maxKeys: 6 }),
        word.map((text) => `/${text}`),
        fc.nat(0o777),
        fc.nat(7),
        fc.array(fc.nat(), { maxLength: 5 }),
        (argv, environment, cwd, umask, terminals, cuts) => {
          const variables = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
          const bytes = Buffer.concat([
            request(cwd, argv, variables, umask, terminals),
            ...[u32(8, 2, 77), u32(8, 2, -2), u32(8, 3, 256), u32(8, 4, 0)],
          ]);
          expect(inPieces(bytes, cuts)).toEqual([
            {
              kind: 'request',
              protocol: 1,
              terminals: [1, 2, 4].map((bit) => (terminals & bit) !== 0),
              umask,
              cwd,
              argv: argv.slice(1),
              environment: { ...environment },
            },
            { kind: 'launched', pid: 77 },
            { kind: 'launched', pid: -2 },
            { kind: 'exited', status: 256 },
            { kind: 'printed' },
          ]);
        },
      ),
    );
  });

  it('of any bytes are frames, or are refused', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.boolean(),
        fc.array(fc.nat(), { maxLength: 3 }),
        (some, isFramed, cuts) => {
          const bytes = isFramed ? Buffer.concat([u32(some.length), some]) : Buffer.from(some);
          try {
            for (const { kind } of inPieces(bytes, cuts))
              expect(['request', 'launched', 'exited', 'printed']).toContain(kind);
          } catch (error) {
            expect(error).toBeInstanceOf(FrameError);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it.each<[string, Buffer]>([
    ['no end of the last text', request('/', ['nd7'], []).subarray(0, -1)],
    ['fewer texts than it says', Buffer.concat([u32(4 + 20 + 3, 1, 1, 0, 0, 3, 0), texts('/', '')])],
    ['more texts than it says', request('/', ['nd7'], []).fill(0, 20, 24)],
    ['a folder that is relative', request('tmp', ['nd7'], [])],
    [
      'bytes that are no UTF-8',
      Buffer.concat([u32(4 + 20 + 5, 1, 1, 0, 0, 1, 0), Buffer.from([0x2f, 0, 0xff, 0xfe, 0])]),
    ],
    ['a number of words that is not there', Buffer.concat([u32(4 + 20 + 2, 1, 1, 0, 0, 0xffff_ffff, 0), texts('/')])],
  ])('a request with %s is refused', (_what, bytes) => {
    const whole = Buffer.from(bytes);
    whole.writeUInt32LE(whole.length - 4, 0);
    expect(() => new FrameReader().push(whole)).toThrow(FrameError);
  });

  it('of two variables by one name the first counts, and what is no variable is none', () => {
    const [asked] = new FrameReader().push(request('/', ['nd7'], ['A=1', 'A=2', '=x', 'B', '__proto__=y']));
    expect(asked).toMatchObject({ environment: { A: '1' } });
    expect(Object.entries((asked as { environment: object }).environment)).toEqual([
      ['A', '1'],
      ['__proto__', 'y'],
    ]);
  });
});

it('frames of a host are as the protocol has them', () => {
  expect(
    [
      refuse('no'),
      launch(2, '/l'),
      prepare(0, '/l'),
      say('ü'),
      flush(),
      signal(9),
      end({ code: 3 }),
      end({ signal: 15 }),
    ].map((bytes) => bytes.toString('hex')),
  ).toEqual([
    '07000000010000006e6f00',
    '0b00000002000000020000002f6c00',
    '0b00000007000000000000002f6c00',
    '0600000003000000c3bc',
    '0400000004000000',
    '080000000500000009000000',
    '0c000000060000000000000003000000',
    '0c00000006000000010000000f000000',
  ]);
});
