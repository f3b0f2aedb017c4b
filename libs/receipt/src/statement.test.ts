import { utf8 } from '@nd7/entry';
import { claimMessage, closeMessage, enrolMessage, openMessage } from '@nd7/segment';
import { generateKeyPair, verifySignatures } from '@nd7/signing';
import { formatVkey } from '@nd7/tlog';
import fc from 'fast-check';
import type { Statement } from './index.js';
import { formatStatement, parseStatement, rotateMessage, statementItems } from './index.js';
import { MAX_LEAF } from './lines.js';

const machine = generateKeyPair();
const [oldKey, newKey] = [generateKeyPair(), generateKeyPair()];
const origin = 'vault.example/acme';
const session = 's-1';
const received = '2026-11-29T19:41:00.123Z';
const by = `u_${'0'.repeat(32)}`;
const [A, B, C] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)];
const root = 'HgBUdwHn9V49pOcpIsws+3QI33ArgQnJxJ7f1BaVIuc=';
const signature = (message: Uint8Array, key = machine): string => Buffer.from(key.sign(message)).toString('base64');
const base = { origin, machine: machine.publicKey, session };
const claim = (
  from: number,
  to: number,
  prev: string,
  head: string,
): { from: number; to: number; prev: string; head: string; signature: string } => ({
  from,
  to,
  prev,
  head,
  signature: signature(claimMessage({ ...base, from, to, prev, head })),
});
const vkey = (key: typeof oldKey): string => formatVkey(origin, 1, Buffer.from(key.publicKey, 'hex'));
const rotated = rotateMessage(origin, vkey(oldKey), vkey(newKey));

const statements: Statement[] = [
  { type: 'head', ...base, ...claim(8, 15, A, B), received },
  {
    type: 'enrol',
    origin,
    machine: machine.publicKey,
    nameHash: A,
    signature: signature(enrolMessage({ origin, machine: machine.publicKey, nameHash: A })),
    received,
  },
  {
    type: 'open',
    ...base,
    entries: 2,
    head: A,
    key: B,
    signature: signature(openMessage({ ...base, entries: 2, head: A, key: B })),
    received,
  },
  {
    type: 'close',
    ...base,
    entries: 2,
    head: A,
    reason: 'ended',
    signature: signature(closeMessage({ ...base, entries: 2, head: A, reason: 'ended' })),
    received,
  },
  {
    type: 'close',
    ...base,
    entries: 0,
    head: A,
    reason: 'continued',
    signature: signature(closeMessage({ ...base, entries: 0, head: A, reason: 'continued' })),
    received,
  },
  { type: 'close', ...base, entries: 2, head: A, reason: 'lost', received },
  { type: 'close', ...base, entries: 2, head: A, reason: 'forked', received },
  { type: 'fork', ...base, count: 5, claims: [claim(0, 5, A, B), claim(5, 9, C, A)], received },
  { type: 'revoke', origin, machine: machine.publicKey, since: '2026-02-28T00:00:00.000Z', by, received },
  {
    type: 'rotate',
    origin,
    old: vkey(oldKey),
    new: vkey(newKey),
    signatures: [signature(rotated, oldKey), signature(rotated, newKey)],
    received,
  },
  { type: 'signer', origin, old: { size: 7, root }, new: { size: 9, root }, by, received },
];
const named = statements.map((s) => [s.type === 'close' ? `close ${s.reason}` : s.type, s] as const);

test.each(named)('%s: both ways, signed where somebody signs', async (_, statement) => {
  const text = formatStatement(statement);
  expect(text.startsWith(`nd7/${statement.type}/v1\norigin ${origin}\n`)).toBe(true);
  expect(parseStatement(text)).toEqual(statement);
  expect(parseStatement(utf8(text))).toEqual(statement);
  const items = statementItems(statement);
  expect(await verifySignatures(items)).toEqual(items.map(() => true));
  const signers = {
    head: 1,
    enrol: 1,
    open: 1,
    close: 'signature' in statement ? 1 : 0,
    fork: 2,
    revoke: 0,
    rotate: 2,
    signer: 0,
  };
  expect(items.length).toBe(signers[statement.type]);
});

test('a head leaf is the one of the document', () => {
  const [head] = statements as [Extract<Statement, { type: 'head' }>];
  expect(formatStatement(head)).toBe(
    `nd7/head/v1\norigin ${origin}\nmachine ${machine.publicKey}\nsession s-1\nentries 8 15\nprev ${A}\nhead ${B}\nreceived ${received}\nsignature ${head.signature}\n`,
  );
});

test.each(named)('%s: lines in another order, twice, missing, with more space, are none', (_, statement) => {
  const lines = formatStatement(statement).split('\n').slice(0, -1);
  const all = (list: readonly string[]): string => list.map((line) => `${line}\n`).join('');
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    expect(parseStatement(all(lines.toSpliced(i, 1)))).toBeUndefined();
    expect(parseStatement(all(lines.toSpliced(i, 0, line)))).toBeUndefined();
    expect(parseStatement(all(lines.with(i, `${line} `)))).toBeUndefined();
    expect(parseStatement(all(lines.with(i, ` ${line}`)))).toBeUndefined();
    expect(parseStatement(all(lines.with(i, line.replace(' ', '  '))))).toBeUndefined();
    expect(parseStatement(all(lines.with(i, line.replace(' ', '\t'))))).toBeUndefined();
    expect(parseStatement(all(lines.with(i, `${line}\r`)))).toBeUndefined();
    if (i > 1 && line.split(' ')[0] !== lines[i - 1]!.split(' ')[0])
      expect(parseStatement(all(lines.with(i, lines[i - 1]!).with(i - 1, line)))).toBeUndefined();
  }
  const text = all(lines);
  for (const bad of [
    text.slice(0, -1),
    `${text}\n`,
    `\n${text}`,
    `${text}more x\n`,
    `\ufeff${text}`,
    text.toUpperCase(),
  ])
    expect(parseStatement(bad)).toBeUndefined();
});

test.each([
  ['2026-02-29T00:00:00.000Z', false],
  ['2024-02-29T00:00:00.000Z', true],
  ['2026-13-01T00:00:00.000Z', false],
  ['2026-04-31T00:00:00.000Z', false],
  ['2026-11-29T24:00:00.000Z', false],
  ['2026-11-29T23:60:00.000Z', false],
  ['2026-11-29T23:59:60.000Z', false],
  ['2026-11-29T23:59:59.999Z', true],
  ['0000-01-01T00:00:00.000Z', false],
  ['0001-01-01T00:00:00.000Z', true],
  ['2026-11-29T19:41:00Z', false],
  ['2026-11-29T19:41:00.123+00:00', false],
  ['2026-11-29t19:41:00.123z', false],
] as const)('received %s', (time, isGood) => {
  const text = formatStatement(statements[0]!).replace(received, time);
  expect(parseStatement(text) !== undefined).toBe(isGood);
});

test('a fork leaf convicts by itself or is none', () => {
  const fork = (count: number, claims: [ReturnType<typeof claim>, ReturnType<typeof claim>]): Statement => ({
    type: 'fork',
    ...base,
    count,
    claims,
    received,
  });
  for (const good of [
    fork(5, [claim(0, 5, A, B), claim(0, 5, A, C)]),
    fork(5, [claim(5, 7, A, B), claim(5, 9, C, B)]),
    fork(5, [claim(5, 9, A, B), claim(0, 5, A, C)]),
    fork(0, [claim(0, 5, A, B), claim(0, 6, B, B)]),
  ]) {
    expect(parseStatement(formatStatement(good))).toEqual(good);
  }
  for (const bad of [
    fork(4, [claim(0, 5, A, B), claim(0, 5, A, C)]),
    fork(5, [claim(0, 5, A, B), claim(0, 5, A, B)]),
    fork(5, [claim(0, 5, A, B), claim(3, 8, A, C)]),
    fork(5, [claim(0, 5, A, B), claim(5, 8, B, C)]),
    fork(0, [claim(0, 5, A, B), claim(0, 5, A, C)]),
  ]) {
    expect(() => formatStatement(bad)).toThrow(RangeError);
  }
});

test('what is no statement is not made', () => {
  const [head, enrol, open, close] = statements as [Statement, Statement, Statement, Statement];
  const lost = statements[5]!;
  const bad = [
    { ...head, from: 15 },
    { ...head, to: 15.5 },
    { ...head, to: 2 ** 53 },
    { ...head, session: '../x' },
    { ...head, session: 's 1' },
    { ...head, session: 's-1\nprev x' },
    { ...head, received: 'now' },
    { ...head, signature: '' },
    { ...enrol, nameHash: 'x' },
    { ...open, entries: 0 },
    { ...close, reason: 'lost' },
    { ...lost, reason: 'ended' },
    { ...lost, reason: 'tired' },
    { ...statements[8]!, by: 'Ada' },
    { ...statements[9]!, new: vkey(oldKey) },
    { ...statements[9]!, new: formatVkey('other.example/x', 1, Buffer.from(newKey.publicKey, 'hex')) },
    { ...statements[9]!, new: formatVkey(origin, 4, Buffer.from(newKey.publicKey, 'hex')) },
    { ...statements[10]!, old: { size: -1, root } },
    { ...statements[10]!, old: { size: 1, root: A } },
  ] as Statement[];
  for (const statement of bad) expect(() => formatStatement(statement)).toThrow(RangeError);
});

test('other types are carried along unread; what is of no frame is none', () => {
  for (const first of ['nd7/erase/v1', 'nd7/head/v2', 'nd7/x-y9/v12']) {
    expect(parseStatement(`${first}\nanything at all\n\n`)).toEqual({ type: 'unknown', first });
  }
  expect(parseStatement('nd7/erase/v1\n')).toEqual({ type: 'unknown', first: 'nd7/erase/v1' });
  for (const text of [
    '',
    '\n',
    'nd7/erase/v1',
    'nd7/erase/v1 \n',
    'nd7/erase\n',
    'ND7/erase/v1\n',
    'head\n',
    'nd7/erase/v1\r\nx\n',
    '\nnd7/erase/v1\n',
  ]) {
    expect(parseStatement(text)).toBeUndefined();
  }
  expect(parseStatement(Uint8Array.of(0x6e, 0xff, 0x0a))).toBeUndefined();
  expect(parseStatement('nd7/erase/v1\n\ud800\n')).toBeUndefined();
});

test('a leaf has at most 4,096 bytes', () => {
  const leaf = (length: number, filler = 'x'): string => `nd7/erase/v1\n${filler.repeat(length)}\n`;
  const room = MAX_LEAF - leaf(0).length;
  expect(parseStatement(leaf(room))).toBeDefined();
  expect(parseStatement(leaf(room + 1))).toBeUndefined();
  expect(parseStatement(utf8(leaf(room)))).toBeDefined();
  expect(parseStatement(utf8(leaf(room + 1)))).toBeUndefined();
  // Bytes, not characters.
  expect(parseStatement(leaf(Math.floor(room / 2) + 1, '\u00e9'))).toBeUndefined();
});

test('counts of 16 digits are compared as they are written', () => {
  const text = formatStatement(statements[0]!);
  const with16 = (from: string, to: string): ReturnType<typeof parseStatement> =>
    parseStatement(text.replace('entries 8 15', `entries ${from} ${to}`));
  expect(with16('9007199254740992', '9007199254740993')).toMatchObject({ type: 'head' });
  expect(with16('9007199254740993', '9007199254740993')).toBeUndefined();
  expect(with16('9007199254740993', '9007199254740992')).toBeUndefined();
  expect(with16('0', '9999999999999999')).toMatchObject({ type: 'head' });
  expect(with16('0', '10000000000000000')).toBeUndefined();
});

test('a flipped byte of a statement is refused, or leaves a bad signature, or changes what nobody signs', async () => {
  for (const statement of statements) {
    const bytes = utf8(formatStatement(statement));
    const items = [];
    for (let at = 0; at < bytes.length; at++) {
      const flipped = bytes.slice();
      flipped[at]! ^= 1 << (at % 8);
      const parsed = parseStatement(flipped);
      if (parsed === undefined || parsed.type === 'unknown') continue;
      const { received: stamp, ...said } = parsed;
      const { received: before, ...was } = statement as typeof parsed;
      // The vault's clock and its own words are under the tree's signature only.
      if (stamp !== before || JSON.stringify(said) === JSON.stringify(was)) continue;
      const signed = statementItems(parsed);
      if (signed.length > 0) items.push(signed);
    }
    const verdicts = await verifySignatures(items.flat());
    let next = 0;
    for (const { length } of items) {
      expect(verdicts.slice(next, next + length)).toContain(false);
      next += length;
    }
  }
}, 60_000);

test('no bytes make the parser throw, and what parses is written the same', () => {
  const lines = statements.flatMap((s) => formatStatement(s).split(/(?<=\n)/));
  const text = fc.oneof(
    fc
      .array(fc.oneof(fc.constantFrom(...lines), fc.string({ unit: 'binary' })), { maxLength: 12 })
      .map((parts) => parts.join('')),
    fc.uint8Array({ maxLength: 300 }),
  );
  fc.assert(
    fc.property(text, (leaf) => {
      const parsed = parseStatement(leaf);
      if (parsed !== undefined && parsed.type !== 'unknown')
        expect(utf8(formatStatement(parsed))).toEqual(typeof leaf === 'string' ? utf8(leaf) : leaf);
    }),
    { numRuns: 1000 },
  );
});
