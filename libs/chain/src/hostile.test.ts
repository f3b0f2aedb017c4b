import { createKernel, referenceKernel } from '@nd7/blake3';
import { MAX_LINE } from '@nd7/entry';
import { nobleVerifier } from '@nd7/tlog';
import { ChainError, ChainWalk, genesis, parseHeadFile, walk } from './index.js';

const session = 'h-1';
const kernel = createKernel();
const options = { session, kernel, verify: nobleVerifier };
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'utf8'));
const entry0 = (rest: string) => bytesOf(`{"v":1,"seq":0,"prev":"${genesis(session)}",${rest}}\n`);

async function verdictOf(bytes: Uint8Array): Promise<[string | undefined, number | undefined, number]> {
  const byKernel = await walk(bytes, options);
  const byReference = await walk(bytes, { ...options, kernel: referenceKernel() });
  expect(byReference).toEqual(byKernel);
  return [byKernel.reason, byKernel.bad_entry, byKernel.lines];
}

test('a line of 1 GB without a newline costs no more than a line', async () => {
  const chunk = new Uint8Array(1 << 20).fill(0x61);
  const chain = new ChainWalk(options);
  await chain.push(entry0('"a":1'));
  for (let i = 0; i < 4; i++) await chain.push(chunk);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 1020; i++) await chain.push(chunk);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 << 20);
  await chain.push(bytesOf('\n{}\n'));
  const result = await chain.finish();
  expect(result).toMatchObject({
    verdict: 'broken',
    bad_entry: 1,
    reason: 'too-long',
    entries: 1,
    lines: 3,
    bytes: 1024 * (1 << 20) + entry0('"a":1').length + 4,
  });
}, 120_000);

test('the limit of a line is known before its newline, in any chunking', async () => {
  const head = `{"v":1,"seq":0,"prev":"${genesis(session)}","a":"`;
  for (const over of [0, 1]) {
    const line = bytesOf(`${head}${'x'.repeat(MAX_LINE - head.length - 2 + over)}"}`);
    expect(line.length).toBe(MAX_LINE + over);
    for (const size of [1 << 16, MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 5_000_000]) {
      const chain = new ChainWalk(options);
      for (let i = 0; i < line.length; i += size) await chain.push(line.subarray(i, i + size));
      expect(chain.broken).toBe(over === 1);
      expect(await chain.finish()).toMatchObject({
        reason: over === 1 ? 'too-long' : 'torn-tail',
        bad_entry: 0,
        lines: 0,
      });
    }
  }
});

test.each([
  ['a million arrays', `"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`, 'too-long'],
  ['half a million arrays, closed', `"a":${'['.repeat(500_000)}${']'.repeat(500_000)}`, 'bad-json'],
  ['half a million arrays, never closed', `"a":${'['.repeat(500_000)}`, 'bad-json'],
  ['256 objects and one', `"a":${'{"a":'.repeat(256)}1${'}'.repeat(256)}`, 'bad-json'],
  [
    'eighty thousand keys, one twice',
    `${Array.from({ length: 80_000 }, (_, i) => `"k${String(i)}":0`).join(',')},"k7":1`,
    'duplicate-key',
  ],
  ['a key twice behind escapes', '"ab":1,"\\u0061\\u0062":2', 'duplicate-key'],
  ['a raw NUL in a string', '"a":"\u0000"', 'bad-json'],
  ['an escaped NUL', '"a":"\\u0000"', undefined],
  ['lone surrogates', '"a":"\\ud800","\\udc00":"\\udfff\\ud800"', undefined],
  ['a lone surrogate key twice', '"\\ud800":1,"\\uD800":2', 'duplicate-key'],
])(
  '%s',
  async (_, rest, reason) => {
    expect(await verdictOf(entry0(rest))).toEqual([reason, reason === undefined ? undefined : 0, 1]);
  },
  60_000,
);

test('a line of newlines, and many of them', async () => {
  const newlines = new Uint8Array(9 << 20).fill(10);
  expect(await walk(newlines, options)).toMatchObject({
    reason: 'bad-json',
    bad_entry: 0,
    lines: 9 << 20,
    bytes: 9 << 20,
  });
});

test('lines beyond what a kernel reports at once, after good ones', async () => {
  const good = entry0('"a":1');
  const many = bytesOf('{}\n'.repeat(200_000));
  const all = new Uint8Array(good.length + many.length);
  all.set(good);
  all.set(many, good.length);
  expect(await walk(all, options)).toMatchObject({ reason: 'bad-prefix', bad_entry: 1, entries: 1, lines: 200_001 });
});

test('a verifier that fails leaves no walk that could pass for good', async () => {
  const seal = '"source":"recorder:nd7","kind":"session.start","data":{"machine":"M","key":"M","cert":"C"}'
    .replaceAll('M', 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a')
    .replace('C', '0'.repeat(128));
  const chain = new ChainWalk({ ...options, verify: () => Promise.reject(new Error('no crypto here')) });
  await expect(chain.push(entry0(seal))).rejects.toThrow('no crypto here');
  await expect(chain.finish()).rejects.toThrow(ChainError);
});

test('misuse is an exception, not a verdict', async () => {
  expect(() => new ChainWalk({ ...options, session: '../x' })).toThrow(ChainError);
  expect(() => genesis('')).toThrow(ChainError);
  const chain = new ChainWalk(options);
  const first = chain.push(new Uint8Array([0x20, 0x0a]));
  await expect(chain.push(new Uint8Array(1))).rejects.toMatchObject({ code: 'overlapping-push' });
  await first;
  await chain.finish();
  await expect(chain.push(new Uint8Array(1))).rejects.toMatchObject({ code: 'finished' });
});

test.each([
  ['{"entries":1,"hash":"H","bytes":2}', true],
  [' {\n"hash" : "H", "x":[1e400], "bytes":0,\t"entries":9999999999999999}\r\n', true],
  ['{"entries":1,"ha\\u0073h":"H","bytes":2}', true],
  ['{"entries":1,"hash":"H","bytes":2}{}', false],
  ['{"entries":1.0,"hash":"H","bytes":2}', false],
  ['{"entries":1e0,"hash":"H","bytes":2}', false],
  ['{"entries":-0,"hash":"H","bytes":2}', false],
  ['{"entries":00,"hash":"H","bytes":2}', false],
  ['{"entries":10000000000000000,"hash":"H","bytes":2}', false],
  ['{"entries":1,"hash":"H","bytes":2,"bytes":2}', false],
  ['{"entries":1,"hash":null,"bytes":2}', false],
  [`{"entries":1,"hash":"H","bytes":2,"x":"${'x'.repeat(70_000)}"}`, false],
  ['[]', false],
  ['null', false],
])('head file %#', (text, usable) => {
  expect(parseHeadFile(bytesOf(text.replace('H', 'ab'.repeat(32)))) !== undefined).toBe(usable);
});
