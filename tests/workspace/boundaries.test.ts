// A boundary rule that nobody tests is decoration: each rule is broken once here, and the linter has to say so.
import { join } from 'node:path';
import { ESLint } from 'eslint';

const root = join(import.meta.dirname, '..', '..');
const eslint = new ESLint({ cwd: root });

/** Ids of the rules that `code` breaks when it stands in the file named. */
async function broken(file: string, code: string): Promise<string[]> {
  const [result] = await eslint.lintText(code, { filePath: join(root, file) });
  return (result?.messages ?? []).map((message) => message.ruleId ?? `fatal: ${message.message}`);
}

const NX = '@nx/enforce-module-boundaries';

describe('module boundaries', () => {
  it.each([
    ['a core lib imports an edge lib', 'libs/chain/src/x.ts', "import '@nd7/journal';\n", NX],
    ['a core lib imports an npm package that is not on its list', 'libs/chain/src/x.ts', "import 'postgres';\n", NX],
    [
      'a core lib imports a Node built-in',
      'libs/chain/src/x.ts',
      "import { readFileSync } from 'node:fs';\nreadFileSync('x');\n",
      'no-restricted-imports',
    ],
    ['a core lib uses Buffer', 'libs/chain/src/x.ts', 'export const x = Buffer.alloc(1);\n', 'no-restricted-globals'],
    [
      'a core lib reads the clock',
      'libs/verify/src/x.ts',
      'export const x = Date.now();\n',
      'no-restricted-properties',
    ],
    ['the vault imports the record plane', 'apps/vault/src/x.ts', "import '@nd7/journal';\n", NX],
    ['the record plane imports the confine plane', 'libs/journal/src/x.ts', "import '@nd7/confine';\n", NX],
    ['the confine plane imports the record plane', 'libs/confine/src/x.ts', "import '@nd7/journal';\n", NX],
    ['the dashboard imports an edge lib', 'apps/dashboard/src/x.ts', "import '@nd7/signing';\n", NX],
    ['a program imports the test lib', 'apps/vault/src/x.ts', "import '@nd7/testing';\n", NX],
    [
      'SQL is made from text',
      'apps/vault/src/x.ts',
      "declare const sql: { unsafe(q: string): void };\nsql.unsafe('x');\n",
      'no-restricted-syntax',
    ],
  ])('are broken when %s', async (_what, file, code, rule) => {
    expect(await broken(file, code)).toContain(rule);
  });

  it('are kept when a core lib imports a core lib', async () => {
    expect(
      await broken('libs/verify/src/x.ts', "import { genesis } from '@nd7/chain';\nexport const x = genesis('s');\n"),
    ).toEqual([]);
  });
});
