import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { answerQuery, CODE, readQuery, TYPE, type Query } from './dns-message.js';

const u16 = (n: number): number[] => [(n >> 8) & 255, n & 255];
const labels = (name: string): number[] => [
  ...name.split('.').flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')]),
  0,
];

interface Parts {
  flags?: number;
  counts?: number[];
  name?: number[];
  type?: number;
  kind?: number;
  rest?: number[];
}
const message = ({
  flags = 0x0100,
  counts = [1, 0, 0, 0],
  name = labels('api.example.com'),
  type = 1,
  kind = 1,
  rest = [],
}: Parts = {}): Uint8Array =>
  Uint8Array.from([
    ...u16(0x1234),
    ...u16(flags),
    ...counts.flatMap(u16),
    ...name,
    ...u16(type),
    ...u16(kind),
    ...rest,
  ]);
const opt = (version = 0, data: number[] = []): number[] => [
  0,
  ...u16(41),
  ...u16(4096),
  0,
  version,
  ...u16(0x8000),
  ...u16(data.length),
  ...data,
];

const read = (parts?: Parts): Query => readQuery(message(parts)) as Query;
/** The code of the answer to what is no query; undefined: none. */
const fault = (bytes: Uint8Array): number | undefined => {
  const said = readQuery(bytes);
  if (!('fault' in said)) throw new Error('it was read');
  return said.fault && (said.fault[3] as number) & 15;
};

describe('a query', () => {
  it('is read with its name, its type and what was said of EDNS', () => {
    expect(read()).toMatchObject({ id: 0x1234, flags: 0x0100, name: 'api.example.com', type: TYPE.a, edns: undefined });
    expect(read({ type: 65, counts: [1, 0, 0, 1], rest: opt(0, [0, 10, 0, 2, 1, 2]) })).toMatchObject({
      type: 65,
      edns: 0,
    });
    expect(read({ counts: [1, 0, 0, 1], rest: opt(7) }).edns).toBe(7);
    expect(read({ name: [0] }).name).toBe('');
  });

  it('keeps every name that is no host name from looking like one', () => {
    const nameOf = (...parts: number[][]): string =>
      read({ name: [...parts.flatMap((part) => [part.length, ...part]), 0] }).name;
    const bytes = (text: string): number[] => [...Buffer.from(text, 'latin1')];
    expect(nameOf(bytes('a.b'), bytes('com'))).toBe('a\\046b.com');
    expect(nameOf([...bytes('evil'), 0], bytes('com'))).toBe('evil\\000.com');
    expect(nameOf(bytes('évil'), bytes('com'))).toBe('\\233vil.com');
    expect(nameOf(bytes('_ldap'), bytes('_tcp'))).toBe('_ldap._tcp');
  });

  it.each([
    ['none at all', message().subarray(0, 11), undefined],
    ['an answer', message({ flags: 0x8180 }), undefined],
    ['a notification', message({ flags: 0x2000 }), CODE.notImplemented],
    ['one without a question', message({ counts: [0, 0, 0, 0] }), CODE.formError],
    ['one with two questions', message({ counts: [2, 0, 0, 0], rest: [...labels('b'), 0, 1, 0, 1] }), CODE.formError],
    ['one that says 65,535 questions', message({ counts: [65_535, 0, 0, 0] }), CODE.formError],
    ['one with an answer in it', message({ counts: [1, 1, 0, 0] }), CODE.formError],
    ['one with an authority in it', message({ counts: [1, 0, 1, 0] }), CODE.formError],
    [
      'one with three additional records',
      message({ counts: [1, 0, 0, 3], rest: [...opt(), ...opt(), ...opt()] }),
      CODE.formError,
    ],
    ['a name that points to itself', message({ name: [0xc0, 12] }), CODE.formError],
    ['a name that points into the header', message({ name: [1, 97, 0xc0, 0] }), CODE.formError],
    ['a label of a type that there is not', message({ name: [0x41, 97, 0] }), CODE.formError],
    ['a label of 64 bytes', message({ name: [64, ...Array<number>(64).fill(97), 0] }), CODE.formError],
    [
      'a name of 256 bytes',
      message({ name: [...Array<number[]>(127).fill([1, 97]).flat(), 1, 97, 0] }),
      CODE.formError,
    ],
    ['a name without an end', message().subarray(0, 20), CODE.formError],
    ['a question without a class', message().subarray(0, message().length - 1), CODE.formError],
    ['something behind the question', message({ rest: [0] }), CODE.formError],
    [
      'an additional record that is no OPT',
      message({ counts: [1, 0, 0, 1], rest: [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0] }),
      CODE.formError,
    ],
    ['an OPT with a name', message({ counts: [1, 0, 0, 1], rest: [1, 97, ...opt()] }), CODE.formError],
    ['an OPT that is cut short', message({ counts: [1, 0, 0, 1], rest: opt().slice(0, 8) }), CODE.formError],
    [
      'an OPT that is longer than the message',
      message({ counts: [1, 0, 0, 1], rest: [...opt().slice(0, 9), 0, 9] }),
      CODE.formError,
    ],
    ['something behind the OPT', message({ counts: [1, 0, 0, 1], rest: [...opt(), 0] }), CODE.formError],
    ['a question of class CHAOS', message({ kind: 3 }), CODE.refused],
  ])('is not %s', (_what, bytes, code) => {
    expect(fault(bytes)).toBe(code);
  });

  it('may have a name of 255 bytes and no longer one', () => {
    const longest = Array<number[]>(127).fill([1, 97]).flat();
    expect(read({ name: [...longest, 0] }).name).toHaveLength(253);
  });

  it('of any bytes is read or not, without an error and never beyond them', () => {
    const wellFormed = fc.record({
      name: fc.array(fc.uint8Array({ minLength: 1, maxLength: 63 }), { maxLength: 3 }),
      type: fc.integer({ min: 0, max: 65_535 }),
    });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 80 }),
          wellFormed.map(({ name, type }) =>
            message({ type, name: [...name.flatMap((part) => [part.length, ...part]), 0] }),
          ),
        ),
        (bytes) => {
          const said = readQuery(bytes);
          if ('fault' in said) return;
          expect(said.name).toMatch(/^[A-Za-z0-9_.\\-]*$/);
          // A message inside of a larger buffer is read as it is alone.
          const larger = new Uint8Array(bytes.length + 9).fill(1);
          larger.set(bytes, 4);
          expect(readQuery(larger.subarray(4, 4 + bytes.length))).toEqual(said);
          for (let end = 0; end < bytes.length; end++)
            expect(readQuery(bytes.subarray(0, end))).toHaveProperty('fault');
        },
      ),
    );
  });
});

describe('an answer', () => {
  it('repeats the question as it came and points to its name', () => {
    const query = read({ name: labels('API.Example.com'), flags: 0x0110 });
    expect([...answerQuery(query, CODE.ok, ['198.18.0.7'], 60)]).toEqual([
      ...u16(0x1234),
      ...u16(0x8190),
      ...u16(1),
      ...u16(1),
      0,
      0,
      0,
      0,
      ...labels('API.Example.com'),
      0,
      1,
      0,
      1,
      0xc0,
      12,
      0,
      1,
      0,
      1,
      0,
      0,
      0,
      60,
      0,
      4,
      198,
      18,
      0,
      7,
    ]);
  });

  it('speaks EDNS to who does, where a code has more than four bits', () => {
    const query = read({ counts: [1, 0, 0, 1], rest: opt(1) });
    const answer = answerQuery(query, CODE.badVersion);
    expect([(answer[3] as number) & 15, answer[11]]).toEqual([0, 1]);
    expect([...answer.subarray(-11)]).toEqual([0, 0, 41, 0x04, 0xd0, 1, 0, 0, 0, 0, 0]);
    expect((answerQuery(read(), CODE.noName)[3] as number) & 15).toBe(CODE.noName);
  });
});
