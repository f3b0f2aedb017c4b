import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import fc from 'fast-check';
import { PolicyDocument, policySchema } from './document.js';
import { PolicyError } from './failure.js';
import { readPolicy } from './read.js';
import { someDocument } from './policies.fixture.js';

const read = (text: string) => readPolicy(text, '/h/.nd7/policy.jsonc', 'user');
function refusal(text: string): PolicyError {
  try {
    read(text);
  } catch (error) {
    if (error instanceof PolicyError) return error;
    throw error;
  }
  throw new Error(`taken: ${text}`);
}

describe('a policy file', () => {
  it('is JSON with comments and trailing commas, and every rule knows its line', () => {
    const policy = read(`\uFEFF{
  // what I work with
  "nd7": 1,
  "files": {
    "read": {
      "allow": ["~/a", /* and */ "~/b",
                "~/c"],
    },
  },
  "environment": { "set": { "A": "" } },
}
`);
    expect(policy.document.files?.read?.allow).toEqual(['~/a', '~/b', '~/c']);
    expect([0, 1, 2].map((i) => policy.lineOf(['files', 'read', 'allow', i]))).toEqual([6, 6, 7]);
    expect(policy.lineOf(['environment', 'set', 'A'])).toBe(10);
    expect(policy.lineOf(['network', 'allow', 0])).toBe(1);
    expect(policy.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each([
    ['', 'bad-json', 1],
    ['null', 'bad-policy', 1],
    ['[]', 'bad-policy', 1],
    ['{', 'bad-json', 1],
    ['{"nd7": 1}}', 'bad-json', 1],
    ['{"nd7": 1} x', 'bad-json', 1],
    ["{'nd7': 1}", 'bad-json', 1],
    ['{nd7: 1}', 'bad-json', 1],
    ['{\n"nd7": 1,\n"nd7": 1}', 'bad-json', 3],
    ['{"nd7": 1, "files": {\n"read": {},\n"read": {"deny": ["/"]}}}', 'bad-json', 3],
    ['{"nd7": 1,\n"__proto__": {"files": {}}}', 'bad-json', 2],
    ['{"nd7": 1,\n"packs": {\n"\\u005f_proto__": true}}', 'bad-json', 3],
    ['{\n}', 'bad-policy', 1],
    ['{\n"nd7": 2}', 'bad-policy', 2],
    ['{"nd7": 1,\n"fils": {}}', 'bad-policy', 1],
    ['{"nd7": 1,\n"files":\n{"reed": {}}}', 'bad-policy', 3],
    ['{"nd7": 1, "files": {"read": {"allow":\n"~/a"}}}', 'bad-policy', 2],
    ['{"nd7": 1, "files": {"read": {"allow": [\n""]}}}', 'bad-policy', 2],
    ['{"nd7": 1, "files": {"read": {"allow": [\nnull]}}}', 'bad-policy', 2],
    ['{"nd7": 1, "masks": [\n{"pattern": "x", "excpt": []}]}', 'bad-policy', 2],
    ['{"nd7": 1, "network": {"allow": [\n{"hosts": "a"}]}}', 'bad-policy', 2],
    ['{"nd7": 1, "network": {"listen": [\n0]}}', 'bad-policy', 2],
    ['{"nd7": 1, "require": [\n"files.everything"]}', 'bad-policy', 2],
    ['{"nd7": 1, "environment": {"set": {\n"A=B": "x"}}}', 'bad-policy', 2],
    [
      '{"nd7": 1, "credentials": [\n{"name": "x", "hosts": [], "way": "terminate", "from": {"variable": "X"}}]}',
      'bad-policy',
      2,
    ],
    [`{"nd7": 1, "files": ${'['.repeat(20_000)}`, 'bad-json', 1],
    [`{"nd7": 1, "a": ${'{"a":'.repeat(10_000)}`, 'bad-json', 1],
    // A lone CR ends a string that nobody closed, and a comment.
    [`{"nd7": 1, "files": "\r${'['.repeat(20_000)}`, 'bad-json', 1],
    [`//\r${'['.repeat(20_000)}`, 'bad-json', 1],
    [' '.repeat(70_000), 'bad-json', null],
    [`{"nd7": 1, "files": {"read": {"allow": [${'"/a",'.repeat(2_000)}]}}}`, 'bad-policy', 1],
  ])('is refused where it is wrong, with the line (%#)', (text, code, line) => {
    const error = refusal(text);
    expect([error.code, error.line, error.file]).toEqual([code, line, '/h/.nd7/policy.jsonc']);
    expect(error.message).toMatch(/^\/h\/\.nd7\/policy\.jsonc:.+\. .+\.$/s);
  });

  it('never makes reading fail in another way, whatever it holds', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.string({
        unit: fc.constantFrom('{', '}', '[', ']', '"nd7"', ':', '1', ',', '"files"', '//', '/*', '*/', '\n', '"', '\\'),
      }),
    );
    fc.assert(
      fc.property(text, (some) => {
        try {
          read(some);
        } catch (error) {
          expect(error).toBeInstanceOf(PolicyError);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('the JSON schema', () => {
  const file = join(import.meta.dirname, '../../../docs/policy.schema.json');

  it('that is published is the one that the code has', () => {
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(policySchema());
  });

  it('says of every field what it means when it is absent, and of every list and object when it is empty', () => {
    const missing: string[] = [];
    const walk = (schema: Record<string, unknown>, path: string, required: boolean): void => {
      const text = String(schema['description'] ?? '');
      const alternatives = (schema['anyOf'] ?? []) as Record<string, unknown>[];
      if (path !== '' && !/absent/i.test(text)) missing.push(`${path}: absent`);
      if ((schema['type'] === 'array' || (schema['type'] === 'object' && !required)) && !/empty/i.test(text))
        missing.push(`${path}: empty`);
      for (const [index, one] of alternatives.entries()) within(one, `${path}|${index}`);
      const items = schema['items'] as Record<string, unknown> | undefined;
      if (items !== undefined)
        for (const one of [items, ...((items['anyOf'] ?? []) as Record<string, unknown>[])]) within(one, `${path}[]`);
      within(schema, path);
    };
    const within = (schema: Record<string, unknown>, path: string): void => {
      const needed = (schema['required'] ?? []) as string[];
      for (const [key, member] of Object.entries(
        (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>,
      ))
        walk(member, `${path}.${key}`, needed.includes(key));
    };
    within(policySchema(), '');
    expect(missing).toEqual([]);
  });

  it('takes what the code takes, and nothing that it refuses by form', () => {
    // Ajv 6 knows draft 7; what is used here means the same there.
    const check = new Ajv().compile({ ...policySchema(), $schema: 'http://json-schema.org/draft-07/schema#' });
    fc.assert(
      fc.property(
        someDocument,
        fc.option(
          fc.tuple(fc.constantFrom('files', 'masks', 'network', 'nd7', 'weakestTier', 'extra'), fc.jsonValue()),
        ),
        (document, change) => {
          const some: unknown = change === null ? document : { ...document, [change[0]]: change[1] };
          expect([some, check(some)]).toEqual([some, PolicyDocument.safeParse(some).success]);
        },
      ),
      { numRuns: 500 },
    );
  });
});
