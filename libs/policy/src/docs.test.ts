// docs/policy.md is what people write policies from: its examples compile, and its table of fields is the schema's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILTINS, SOCKETS } from './builtin/index.js';
import { compile } from './compile.js';
import { policySchema } from './document.js';
import { input } from './machine.fixture.js';
import { readPolicy } from './read.js';
import { PROPERTIES } from './ruleset.js';

const page = readFileSync(join(import.meta.dirname, '../../../docs/policy.md'), 'utf8');

type Schema = Record<string, unknown>;

/** Every field of the schema with its meaning, in the order of the schema. */
function fields(schema: Schema, path = ''): [string, string][] {
  const alternatives = [schema, ...((schema['anyOf'] ?? []) as Schema[])];
  return alternatives.flatMap((one) => {
    const items = one['items'] as Schema | undefined;
    const members = Object.entries((one['properties'] ?? {}) as Record<string, Schema>);
    return [
      ...members.flatMap(([name, member]): [string, string][] => {
        const at = path === '' ? name : `${path}.${name}`;
        return [[at, String(member['description'] ?? '')], ...fields(member, at)];
      }),
      ...(items === undefined ? [] : fields(items, `${path}[]`)),
    ];
  });
}

describe('docs/policy.md', () => {
  it('has every field with what it means, absent and empty', () => {
    const rows = fields(policySchema()).map(([name, meaning]) => `| \`${name}\` | ${meaning.replaceAll('|', '\\|')} |`);
    expect(rows.length).toBeGreaterThan(50);
    expect(rows.filter((row) => !page.includes(row))).toEqual([]);
  });

  it('has examples that are policies', () => {
    const examples = [...page.matchAll(/```jsonc\n([^]*?)```/g)].map((match) => match[1] as string);
    expect(examples.length).toBeGreaterThan(2);
    for (const text of examples) {
      const policy = readPolicy(text, 'docs/policy.md', 'user');
      expect(() => compile({ ...input, user: policy })).not.toThrow();
      expect(() => compile({ ...input, project: { policy, trusted: false } })).not.toThrow();
    }
  });

  it('names every profile, pack, socket and property', () => {
    const names = [...BUILTINS.keys(), ...Object.keys(SOCKETS), ...Object.keys(PROPERTIES)];
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
