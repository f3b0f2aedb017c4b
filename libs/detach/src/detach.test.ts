import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { blake3Hex } from '@nd7/blake3';
import { compactJson, MAX_LINE, parseStrictJson, printEntry, utf8, type Detached } from '@nd7/entry';
import { detachValues, SecretMemory, type DetachOptions, type DetachResult } from './index.js';

let salts = 0;
const random = (n: number): Uint8Array => new Uint8Array(n).fill(++salts & 0xff);
const detach = (text: string, more: Partial<DetachOptions> = {}): DetachResult =>
  detachValues(text, { random, memory: new SecretMemory(), ...more });

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes?.subarray(32));
const tests = join(import.meta.dirname, '../../../tests');

function compact(json: string): string {
  const bytes = utf8(json);
  const parsed = parseStrictJson(bytes, { maxDepth: 100_000 });
  if (!parsed.ok) throw new Error(parsed.reason);
  return compactJson(bytes, parsed.root);
}

/** Puts the detached values back where they stood; the result must be what was said. */
function restore(result: DetachResult): unknown {
  const root = JSON.parse(result.data) as unknown;
  for (const [i, { at }] of result.detached.entries()) {
    const tokens = at
      .slice(1)
      .split('/')
      .map((t) => t.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = tokens.pop() as string;
    let parent = root as Record<string, unknown>;
    for (const token of tokens) parent = parent[token] as Record<string, unknown>;
    expect(parent[last]).toBeNull();
    // Not plain assignment: `__proto__` is a key like any other.
    Object.defineProperty(parent, last, {
      value: JSON.parse(text(result.blobs[i]?.bytes)) as unknown,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return root;
}

function fits(result: DetachResult): void {
  const line = printEntry(123_456_789, '0'.repeat(64), {
    time: '2026-11-29T19:41:00.123Z',
    source: 'intent:claude-code',
    kind: 'tool.before',
    data: result.data,
    peer: { pid: 1, start: '1', env: 'e'.repeat(4096) },
    detached: result.detached,
  });
  expect(line.length).toBeLessThanOrEqual(MAX_LINE);
  expect(result.blobs).toHaveLength(result.detached.length);
  for (const [i, { blake3, bytes, why }] of result.detached.entries()) {
    const blob = result.blobs[i];
    expect(blake3Hex(blob?.bytes ?? new Uint8Array())).toBe(blake3);
    expect(blob?.hash).toBe(blake3);
    expect(bytes).toBe(why === 'size' || why === 'depth' ? (blob?.bytes.length ?? 0) - 32 : undefined);
  }
}

const why = (result: DetachResult): [string, Detached['why']][] => result.detached.map((d) => [d.at, d.why]);

describe('what stays', () => {
  it('is what was said, byte for byte, of every payload that real clients sent', () => {
    let count = 0;
    for (const agent of readdirSync(join(tests, 'captures'))) {
      const folder = join(tests, 'captures', agent);
      for (const name of statSync(folder).isDirectory() ? readdirSync(folder) : []) {
        if (!name.endsWith('.json')) continue;
        const said = readFileSync(join(folder, name), 'utf8');
        const result = detach(said);
        expect([name, why(result)]).toEqual([name, []]);
        expect(result.data).toBe(compact(said));
        count++;
      }
    }
    expect(count).toBeGreaterThan(300);
  });

  it('keeps spelling: numbers, escapes, order, keys that are no words', () => {
    const said =
      ' {"b" : 1.0e+2 , "a":[ 123456789012345678901234567890, "\\u00e9é\\ud800\\/" ],\n"__proto__":{"":null}, "\\u0061":{} }';
    expect(() => detach(said)).toThrow(expect.objectContaining({ code: 'duplicate-key' }) as Error);
    const other = said.replace('"\\u0061"', '"c"');
    expect(detach(other).data).toBe(
      '{"b":1.0e+2,"a":[123456789012345678901234567890,"\\u00e9é\\ud800\\/"],"__proto__":{"":null},"c":{}}',
    );
  });

  it.each([
    '',
    ' ',
    '[]',
    '"a"',
    '1',
    '{',
    '{"a":1',
    '{"a":1}}',
    '{"a":1} x',
    '{a:1}',
    "{'a':1}",
    '{"a":01}',
    '{"a":.5}',
    '{"a":1,}',
    '{"a":[1,]}',
    '{"a" 1}',
    '{"a":NaN}',
    '{"a":"\u0001"}',
    '{"a":"\\x"}',
    '{"a":"\\u12g4"}',
    '\ufeff{}',
    '{"a":]}',
    '{]',
    '{"a":tru}',
    '{"a":"x',
  ])('refuses %j, which is no payload', (bad) =>
    expect(() => detach(bad)).toThrow(expect.objectContaining({ code: 'bad-json' }) as Error),
  );

  it('refuses a lone surrogate outside an escape', () => {
    expect(() => detach('{"a":"\ud800"}')).toThrow(expect.objectContaining({ code: 'bad-text' }) as Error);
  });

  it('agrees with JSON.parse on what JSON is (property)', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '1',
      '-0.5e3',
      'true',
      'null',
      ' ',
      '"',
      '\\',
      '\n',
      '01',
      '-',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 14 }), (tokens) => {
        const said = `{"x":${tokens.join('')}}`;
        let good = true;
        try {
          JSON.parse(said);
        } catch {
          good = false;
        }
        let code = 'good';
        try {
          detach(said);
        } catch (error) {
          code = (error as { code: string }).code;
        }
        expect(code === 'good' || code === 'duplicate-key').toBe(good);
      }),
      { numRuns: 3000 },
    );
  });

  it('and what is detached are together the payload, and the line fits (property)', () => {
    const value = fc.json({ maxDepth: 6, stringUnit: 'grapheme' });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ maxLength: 12 }), value), { maxLength: 12 }),
        fc.constantFrom(4, 20, 80, 65_536),
        (members, limitBytes) => {
          const unique = new Map(members);
          const said = `{ ${[...unique].map(([k, v]) => `${JSON.stringify(k)} : ${v}`).join(' ,\n')} }`;
          const result = detach(said, { limitBytes });
          fits(result);
          expect(JSON.stringify(restore(result))).toBe(JSON.stringify(JSON.parse(said)));
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe('what is too large', () => {
  it('is taken as deep down as it is the reason: the string, not its object', () => {
    const big = 'x'.repeat(65_535); // 65,537 bytes with its quotes
    const result = detach(
      JSON.stringify({ tool_name: 'Write', tool_input: { file_path: '/a', content: big }, after: 1 }),
    );
    expect(result.data).toBe('{"tool_name":"Write","tool_input":{"file_path":"/a","content":null},"after":1}');
    expect(result.detached).toMatchObject([{ at: '/tool_input/content', bytes: 65_537, why: 'size' }]);
    expect(text(result.blobs[0]?.bytes)).toBe(`"${big}"`);
    expect(detach(JSON.stringify({ a: big.slice(1) })).detached).toEqual([]); // 65,536 exactly
  });

  it('counts bytes, not characters', () => {
    expect(detach(JSON.stringify({ a: '€'.repeat(21_845) })).detached).toMatchObject([{ bytes: 65_537 }]);
    expect(detach(JSON.stringify({ a: '€'.repeat(21_844) })).detached).toEqual([]);
    expect(detach(JSON.stringify({ a: '😀'.repeat(16_384) })).detached).toMatchObject([{ bytes: 65_538 }]);
  });

  it('may be many small things: their container goes, white space and all', () => {
    const list = `[ ${Array.from({ length: 20_000 }, (_, i) => i).join(' , ')} ]`;
    const result = detach(`{"a":{"list":${list}}}`);
    expect(why(result)).toEqual([['/a/list', 'size']]);
    expect(text(result.blobs[0]?.bytes)).toBe(list);
  });

  it('may be the sum of values that are small enough: the largest go until the line fits', () => {
    const members = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`m${i}`, 'y'.repeat(30_000 + i)]));
    const result = detach(JSON.stringify({ tool_name: 'x', ...members }));
    fits(result);
    expect(result.data).toContain('"tool_name":"x"');
    expect(why(result).every(([, w]) => w === 'size')).toBe(true);
    expect(result.detached.length).toBeGreaterThan(25);
    expect(result.detached.length).toBeLessThan(60);
    expect(JSON.stringify(restore(result))).toBe(JSON.stringify({ tool_name: 'x', ...members }));
  });

  it('may be the payload of a hundred thousand members: it stands whole elsewhere', () => {
    const said = `{${Array.from({ length: 120_000 }, (_, i) => `"key${i}":${i}`).join(',')}}`;
    const result = detach(said);
    expect([result.data, why(result)]).toEqual(['{"payload":null}', [['/payload', 'size']]]);
    expect(text(result.blobs[0]?.bytes)).toBe(said);
  });

  it.each([
    ['a key of a megabyte', `{"${'k'.repeat(1_100_000)}":1}`],
    ['a key of a megabyte further down', `{"a":{"${'k'.repeat(1_100_000)}":1}}`],
    ['a number of a megabyte', `{"a":${'9'.repeat(1_100_000)}}`],
    [
      'a hundred thousand secrets',
      JSON.stringify({ a: Array.from({ length: 100_000 }, (_, i) => `ghp_${String(i).padStart(36, 'a')}`) }),
    ],
    [
      'ten thousand secret members',
      JSON.stringify(
        Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, `ghp_${String(i).padStart(36, 'a')}`])),
      ),
    ],
    ['objects in objects whose keys are long', `${`{"${'l'.repeat(9_000)}":`.repeat(200)}1${'}'.repeat(200)}`],
  ])('and hostile (%s) fits all the same', (_what, said) => {
    const result = detach(said);
    fits(result);
    expect(JSON.stringify(restore(result) === undefined)).toBe('false');
  });
});

describe('what is too deep', () => {
  const nested = (n: number): string => `${'['.repeat(n)}${']'.repeat(n)}`;

  it('stays as long as the line may nest so deep', () => {
    expect(detach(`{"a":${nested(254)}}`).detached).toEqual([]);
    const result = detach(`{"a":${nested(255)},"b":1}`);
    fits(result);
    expect(result.detached).toMatchObject([{ at: `/a${'/0'.repeat(254)}`, why: 'depth', bytes: 2 }]);
  });

  it('costs a byte a level: a million of them', () => {
    const result = detach(`{"a":${nested(1_000_000)}}`);
    fits(result);
    expect(why(result)).toMatchObject([[`/a${'/0'.repeat(254)}`, 'depth']]);
  });

  it('in thousands of places goes together', () => {
    const result = detach(`{"a":[${Array.from({ length: 3000 }, () => nested(300)).join(',')}],"b":2}`);
    fits(result);
    expect(why(result)).toEqual([['/a', 'size']]);
  });
});

describe('what a policy holds back', () => {
  it('by pointer, any value, with * for one step', () => {
    const said = '{"tool_input":{"env":{"A":"1","B":{"c":2}},"x/y":[10,20]},"env":3}';
    const rules = { pointers: ['/tool_input/env/*', '/tool_input/x~1y/1', '/nowhere', 'no pointer', ''] };
    const result = detach(said, { rules });
    expect(result.data).toBe('{"tool_input":{"env":{"A":null,"B":null},"x/y":[10,null]},"env":3}');
    expect(why(result)).toEqual([
      ['/tool_input/env/A', 'policy'],
      ['/tool_input/env/B', 'policy'],
      ['/tool_input/x~1y/1', 'policy'],
    ]);
    expect(result.detached.every((d) => d.bytes === undefined && d.shown === undefined)).toBe(true);
  });

  it('by text, shown without it', () => {
    const result = detach('{"c":"see project-titan and CUST-4711, not CUST"}', {
      rules: { patterns: ['titan', 'CUST-*', '*'] },
    });
    expect(result.detached).toMatchObject([
      { at: '/c', why: 'policy', shown: 'see project-[secret] and [secret] not CUST' },
    ]);
  });

  it('is a secret all the same where one stands in it', () => {
    const result = detach('{"c":{"d":"ghp_0123456789abcdefghijABCDEFGHIJ012345"}}', { rules: { pointers: ['/c'] } });
    expect(why(result)).toEqual([['/c', 'secret']]);
  });
});
