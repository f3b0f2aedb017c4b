import { member, parseStrictJson, stringValue } from '@nd7/entry';
import fc from 'fast-check';
import { Members } from './members.js';
import { readFirstEntry, readSeal } from './seal.js';

/** Writes a string with some of its characters as escapes, chosen by `pick`. */
function spell(text: string, pick: () => number): string {
  let out = '';
  for (const unit of text.split('')) {
    const code = unit.charCodeAt(0);
    const escape = `\\u${code.toString(16).padStart(4, '0')}`;
    const isPlain = code >= 0x20 && unit !== '"' && unit !== '\\' && (code < 0xd800 || code > 0xdfff);
    const choice = pick() % 4;
    out += isPlain && choice > 0 ? unit : choice === 1 ? escape.toUpperCase().replace('\\U', '\\u') : escape;
  }
  return `"${out}"`;
}

const word = fc.constantFrom(
  'source',
  'kind',
  'data',
  'seal',
  'recorder:nd7',
  'session.start',
  'next',
  'sig',
  'machine',
  'key',
  'cert',
  'kin',
  'kinds',
  'ſeal',
  '',
  '"',
  '\\',
  '}',
  ',',
  'a\u0000b',
  '\ud800',
  '😀',
  '0'.repeat(64),
  'f'.repeat(128),
);
const { value } = fc.letrec<{ value: unknown; object: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    word,
    fc.constantFrom(null, true, false, 0, -1.5e300),
    tie('object'),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
  object: fc
    .array(fc.tuple(word, tie('value')), { maxLength: 6 })
    .map((pairs) => new Map(pairs as [string, unknown][])),
}));
const object = fc
  .array(fc.tuple(word, value), { maxLength: 8 })
  .chain((pairs) => fc.tuple(fc.constant(pairs), fc.constantFrom('seal', 'session.start', 'x'), value, fc.nat()))
  .map(([pairs, kind, data, order]) => {
    const all: [string, unknown][] = [...pairs, ['source', 'recorder:nd7'], ['kind', kind], ['data', data]];
    const turned = [...all.slice(order % all.length), ...all.slice(0, order % all.length)];
    return new Map(turned);
  });

/** The JSON text of a value, with escapes and white space as `picks` say. */
function write(node: unknown, pick: () => number): string {
  const gap = () => ['', '', ' ', '\t', '\r \t'][pick() % 5] as string;
  if (typeof node === 'string') return spell(node, pick);
  if (node instanceof Map) {
    const members = [...(node as Map<string, unknown>)].map(
      ([k, v]) => `${gap()}${spell(k, pick)}${gap()}:${gap()}${write(v, pick)}${gap()}`,
    );
    return `{${members.join(',') || gap()}}`;
  }
  if (Array.isArray(node)) return `[${node.map((v) => `${gap()}${write(v, pick)}${gap()}`).join(',') || gap()}]`;
  return JSON.stringify(node);
}

const written = fc
  .tuple(
    fc.oneof(
      object,
      fc.array(fc.tuple(word, value), { maxLength: 6 }).map((p) => new Map(p)),
    ),
    fc.infiniteStream(fc.nat({ max: 60 })),
  )
  .map(([tree, stream]) => {
    const pick = () => stream.next().value;
    return new Uint8Array(Buffer.from(write(tree, pick), 'utf8'));
  });

test('the cursor sees the members that the strict parser sees', () => {
  fc.assert(
    fc.property(written, (bytes) => {
      const parsed = parseStrictJson(bytes, { object: true });
      if (!parsed.ok) throw new Error(parsed.reason);
      const seen: [string | undefined, number, number][] = [];
      const members = new Members(bytes, 0, bytes.length);
      while (members.next()) {
        const key = stringValue(bytes, { type: 'string', start: members.keyStart - 1, end: members.keyEnd + 1 });
        if (key !== undefined && /^[a-z]+$/.test(key)) expect(members.keyIs(key)).toBe(true);
        expect(members.keyIs('kind')).toBe(key === 'kind');
        seen.push([key, members.valueStart, members.valueEnd]);
      }
      expect(seen).toEqual(parsed.root.members?.map((m) => [m.key, m.value.start, m.value.end]));
    }),
    { numRuns: 1500 },
  );
}, 60_000);

test('a seal, and what entry 0 says, are what a whole parse of the line says', () => {
  fc.assert(
    fc.property(written, (bytes) => {
      const parsed = parseStrictJson(bytes, { object: true });
      if (!parsed.ok) throw new Error(parsed.reason);
      const { root } = parsed;
      const text = (name: string) => stringValue(bytes, member(root, name));
      const data = member(root, 'data');
      const inner = (name: string, limit: number) => {
        const node = data?.type === 'object' ? member(data, name) : undefined;
        const said = stringValue(bytes, node);
        return node === undefined ? undefined : said === undefined || said.length > limit ? null : said;
      };
      const isSeal = text('source') === 'recorder:nd7' && text('kind') === 'seal';
      const seal = { next: inner('next', 64) ?? null, sig: inner('sig', 128) ?? null };
      expect(readSeal(bytes, 1, bytes.length)).toEqual(isSeal ? seal : undefined);
      const machine = inner('machine', 64);
      const key = inner('key', 64);
      const hasKey = text('source') === 'recorder:nd7' && text('kind') === 'session.start' && key !== undefined;
      const cert = inner('cert', 128) ?? null;
      expect(readFirstEntry(bytes, 0, bytes.length)).toEqual({
        machine,
        ...(hasKey && { key: { key, machine: machine ?? null, cert } }),
      });
    }),
    { numRuns: 3000 },
  );
}, 60_000);
