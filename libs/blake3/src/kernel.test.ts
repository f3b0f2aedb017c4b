import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { createKernel } from './kernel.js';
import { Fault, FAULT_REASONS, type LineKernel, type LineScan, MAX_CHUNK, MAX_LINES } from './lines.js';
import { referenceKernel } from './reference.js';

const kernel = createKernel();
const reference = referenceKernel();
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A scan as plain values, taken before the next call overwrites it. */
function plain(scan: LineScan) {
  return {
    ...scan,
    ends: [...scan.ends],
    faults: [...scan.faults],
    hashes: Buffer.from(scan.hashes).toString('hex'),
  };
}

/** Both kernels say the same of a chunk; returns the faults. */
function agreed(chunk: Uint8Array): number[] {
  const answer = plain(kernel.scan(chunk));
  expect(answer).toEqual(plain(reference.scan(chunk)));
  return answer.faults;
}

/** The fault of one line, on which both kernels agree. */
function fault(line: string | Uint8Array): number | undefined {
  const bytes = typeof line === 'string' ? bytesOf(line) : line;
  return agreed(Buffer.concat([bytes, Uint8Array.of(10)]))[0];
}

describe('lines', () => {
  test('what follows the last newline is left', () => {
    const scan = kernel.scan(bytesOf('{}\n{"a":1}\r\n{"b":'));
    expect(plain(scan)).toMatchObject({ count: 2, ends: [3, 12], faults: [0, 0], consumed: 12, more: false });
    expect(plain(kernel.scan(bytesOf('{"b":')))).toMatchObject({ count: 0, ends: [], consumed: 0, more: false });
    expect(plain(kernel.scan(new Uint8Array()))).toMatchObject({ count: 0, consumed: 0 });
  });

  test('nothing of an earlier chunk shows in a later one', () => {
    kernel.scan(bytesOf(`{"a":"${'x'.repeat(5000)}"}\n`.repeat(20)));
    agreed(bytesOf('{"a":1'));
    expect(agreed(bytesOf('{}\n{"a":"xx'))).toEqual([0]);
  });

  test('a chunk of nothing but newlines takes several calls', () => {
    const chunk = new Uint8Array(MAX_LINES + 10).fill(10);
    for (const one of [kernel, reference]) {
      const first = one.scan(chunk);
      expect([first.count, first.consumed, first.more]).toEqual([MAX_LINES, MAX_LINES, true]);
      expect(first.faults.every((f) => f === Fault.badJson)).toBe(true);
      const second = one.scan(chunk.subarray(first.consumed));
      expect([second.count, second.consumed, second.more]).toEqual([10, 10, false]);
    }
    const exact = kernel.scan(chunk.subarray(0, MAX_LINES));
    expect([exact.count, exact.more]).toEqual([MAX_LINES, false]);
  }, 30_000);

  test('a chunk that is too large is refused, the largest is not', () => {
    for (const one of [kernel, reference]) expect(() => one.scan(new Uint8Array(MAX_CHUNK + 1))).toThrow(RangeError);
    expect(kernel.scan(new Uint8Array(MAX_CHUNK)).count).toBe(0);
  });

  test('kernels do not disturb each other', () => {
    const [one, two] = [createKernel(), createKernel()];
    const first = one.scan(bytesOf('{"a":1}\n'));
    const before = plain(first);
    two.scan(bytesOf('[]\n[]\n'));
    expect(plain(first)).toEqual(before);
  });
});

describe('one fault at a time, in their order', () => {
  const long = (text: string, size: number) => text.replace('*', 'x'.repeat(size - text.length + 1));
  test.each<[string, string | Uint8Array, number]>([
    ['fine', '{"a":[1,{"b":null}]}', Fault.ok],
    ['white space around', ' \t\r{ \t} \r', Fault.ok],
    ['empty', '', Fault.badJson],
    ['not an object', '[]', Fault.badJson],
    ['the longest', long('{"a":"*"}', 1_048_576), Fault.ok],
    ['one longer', long('{"a":"*"}', 1_048_577), Fault.tooLong],
    ['too long and not UTF-8 and no JSON', new Uint8Array(1_048_577).fill(0xff), Fault.tooLong],
    ['not UTF-8 after what is no JSON', Uint8Array.of(0x5d, 0x5d, 0xff), Fault.notUtf8],
    ['not UTF-8 after a doubled key', Uint8Array.of(...bytesOf('{"a":1,"a":2}'), 0xc3), Fault.notUtf8],
    ['a surrogate in UTF-8', Uint8Array.of(...bytesOf('{"a":"'), 0xed, 0xa0, 0x80, ...bytesOf('"}')), Fault.notUtf8],
    ['an overlong form', Uint8Array.of(...bytesOf('{"a":"'), 0xc0, 0x80, ...bytesOf('"}')), Fault.notUtf8],
    ['a sequence cut off by the end of the line', Uint8Array.of(...bytesOf('{"a":"'), 0xf0, 0x9f, 0x98), Fault.notUtf8],
    ['no JSON after a doubled key', '{"a":1,"a":2,}', Fault.badJson],
    ['a byte order mark', '\ufeff{}', Fault.badJson],
    ['NUL in a string', '{"a":"\0"}', Fault.badJson],
    ['NUL escaped', '{"a\\u0000":"\\u0000"}', Fault.ok],
    ['NUL after the object', '{}\0', Fault.badJson],
    ['lone surrogates escaped', '{"\\ud800":"\\udfff\\ud800"}', Fault.ok],
    ['a key twice', '{"a":1,"b":{"a":1},"a":2}', Fault.duplicateKey],
    ['a key twice behind an escape', '{"kind":1,"k\\u0069nd":2}', Fault.duplicateKey],
  ])('%s', (_, line, expected) => expect(fault(line)).toBe(expected));

  test('the numbers stand for the reasons of the format', () => {
    const named = [Fault.tooLong, Fault.notUtf8, Fault.badJson, Fault.duplicateKey].map((n) => FAULT_REASONS[n]);
    expect(named).toEqual(['too-long', 'not-utf8', 'bad-json', 'duplicate-key']);
  });
});

/** All of a stream through a kernel, as its lines come; the tail without a newline goes unread. */
function faultsOf(one: LineKernel, bytes: Uint8Array): number[] {
  const faults: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const scan = one.scan(bytes.subarray(at, at + MAX_CHUNK));
    if (scan.count === 0) break;
    faults.push(...scan.faults);
    at += scan.consumed;
  }
  return faults;
}

test('every log of the vectors: the first bad line has the reason that the vectors name', () => {
  const folder = new URL('../../../tests/vectors/', import.meta.url);
  let named = 0;
  for (const part of ['logs', 'edge']) {
    const index = JSON.parse(readFileSync(new URL(`${part}/index.json`, folder), 'utf8')) as unknown;
    const reasons = new Map<string, { bad_entry?: number; reason?: string }>();
    collect(index, reasons);
    for (const name of readdirSync(new URL(`${part}/`, folder))) {
      if (!name.endsWith('.jsonl') && !name.endsWith('.rlog')) continue;
      const bytes = readFileSync(new URL(`${part}/${name}`, folder));
      const faults = faultsOf(kernel, bytes);
      if (bytes.length < MAX_CHUNK) expect(faults).toEqual(agreed(bytes));
      const expected = reasons.get(name);
      if (expected?.reason === undefined || !FAULT_REASONS.some((reason) => reason === expected.reason)) continue;
      const first = faults.findIndex((f) => f !== Fault.ok);
      // A line too long that no newline ends is the walk's to see.
      if (first < 0 && expected.reason === 'too-long') continue;
      expect([name, first, FAULT_REASONS[faults[first] as 1]]).toEqual([name, expected.bad_entry, expected.reason]);
      named++;
    }
  }
  expect(named).toBeGreaterThan(20);
}, 60_000);

/** Finds { file or log or name, bad_entry, reason } wherever they stand in an index. */
function collect(value: unknown, into: Map<string, { bad_entry?: number; reason?: string }>): void {
  if (typeof value !== 'object' || value === null) return;
  const entry = value as Record<string, unknown>;
  const file = entry['log'] ?? entry['file'] ?? entry['name'];
  if (typeof file === 'string')
    into.set(file.endsWith('log') || file.endsWith('jsonl') ? file : `${file}.jsonl`, entry);
  for (const inner of Object.values(entry)) collect(inner, into);
}

describe('both kernels agree', () => {
  const pieces = ['{', '}', '[', ']', ',', ':', '"a"', '"b"', '"\\u0061"', '"\\ud83d\\ude00"', '"😀"', '"\\ud83d"', '1', '-0.5e3', '01', 'true', 'false', 'null', 'nul', ' ', '\r', '\n', '"', '\\', '\u0001', '"é"', '""', '"fifteen bytes.."', '"sixteen bytes..."', '{"a":1,"b":', '"\\n\\"\\\\ a long text of more than sixteen bytes \\u00e9"']; // prettier-ignore

  test('on random tokens', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 60 }), (tokens) => {
        agreed(bytesOf(`{"x":${tokens.join('')}\n${tokens.slice(9).join('')}}\n`));
      }),
      { numRuns: 3000 },
    );
  }, 60_000);

  test('on objects with a byte changed, dropped, doubled or moved', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 40 }));
    const object = fc.dictionary(text, fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }), { maxKeys: 24 });
    const how = fc.constantFrom('nothing', 'change', 'drop', 'double', 'move');
    fc.assert(
      fc.property(
        fc.array(object, { minLength: 1, maxLength: 4 }),
        fc.nat(),
        fc.nat(255),
        how,
        (objects, place, byte, change) => {
          const bytes = [...bytesOf(objects.map((o) => `${JSON.stringify(o)}\n`).join(''))];
          const at = place % bytes.length;
          if (change === 'change') bytes[at] = byte;
          if (change === 'drop') bytes.splice(at, 1 + (byte % 4));
          if (change === 'double') bytes.splice(at, 0, ...bytes.slice(at, at + 1 + (byte % 24)));
          if (change === 'move') bytes.splice(byte % bytes.length, 0, ...bytes.splice(at, 1));
          agreed(Uint8Array.from(bytes));
        },
      ),
      { numRuns: 2000 },
    );
  }, 60_000);

  test('on UTF-8 and what is nearly UTF-8, at every place of a vector', () => {
    const unit = fc.constantFrom([0x61], [0xc3, 0xa9], [0xe2, 0x82, 0xac], [0xf0, 0x9f, 0x98, 0x80], [0xed, 0x9f, 0xbf], [0xee, 0x80, 0x80], [0xf4, 0x8f, 0xbf, 0xbf], [0x20, 0x20, 0x20, 0x20, 0x20]); // prettier-ignore
    const stray = fc.constantFrom(
      0x80,
      0xbf,
      0xc0,
      0xc1,
      0xc2,
      0xe0,
      0xed,
      0xef,
      0xf0,
      0xf4,
      0xf5,
      0xff,
      0x9f,
      0xa0,
      0x8f,
      0x90,
    );
    fc.assert(
      fc.property(
        fc.array(unit, { maxLength: 60 }),
        fc.option(stray),
        fc.nat(),
        fc.boolean(),
        (units, byte, place, drop) => {
          const inner: number[] = units.flat();
          if (byte !== null) inner.splice(place % (inner.length + 1), drop ? 1 : 0, byte);
          agreed(Uint8Array.from([...bytesOf('{"a":"'), ...inner, ...bytesOf('"}\n')]));
          agreed(Uint8Array.from([...inner, 10, ...inner, 10]));
        },
      ),
      { numRuns: 3000 },
    );
  }, 60_000);

  test('on keys that are equal only after unescaping', () => {
    // Few keys in many spellings, so that they meet; few and many in an object, so that both ways of looking are taken.
    const characters = ['a', 'b', '/', 'é', '\u0000', '\ud83d', '\ude00', '😀', '"'];
    const spelled = fc.tuple(fc.constantFrom(...characters), fc.boolean()).map(([c, escape]) => {
      if (!escape) return JSON.stringify(c).slice(1, -1);
      return [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
    });
    const key = fc.array(spelled, { maxLength: 3 }).map((parts) => parts.join(''));
    const object = fc.array(key, { maxLength: 12 }).map((keys) => `{${keys.map((k) => `"${k}":1`).join()}}`);
    const padding = Array.from({ length: 15 }, (_, i) => `"p${i}":0,`).join('');
    fc.assert(
      fc.property(object, object, fc.boolean(), (one, two, large) => {
        agreed(bytesOf(`${one}\n{${large ? padding : ''}"x":${one},"y":[${two}],"z":${two}}\n${two}\n`));
      }),
      { numRuns: 3000 },
    );
  }, 60_000);

  test('on strings of every length that end in an escape or have one early or in the middle', () => {
    const lines: string[] = [];
    // Strings are read by vectors of 16 bytes and blocks of 64: all their borders are met.
    for (let length = 0; length < 160; length++) {
      for (const escape of ['', '\\n', '\\u00e9', '\\"', '\\\\', '\\\\\\"', '\\x', '\\u12', '\\', '\\\\\\']) {
        for (const place of [0, length >> 1, length]) {
          const text = `${'s'.repeat(place)}${escape}${'t'.repeat(length - place)}`;
          lines.push(`{"${text}":"${text}"}`, `{"k":"${text}`);
        }
      }
    }
    agreed(bytesOf(`${lines.join('\n')}\n`));
  }, 60_000);
});
