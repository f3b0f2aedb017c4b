// docs/evidence.md names what shows each claim: every file and every test name on it must exist, and every kind of test must be named on it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs/evidence.md'), 'utf8');
/** A file in backticks and the names in “ ” that follow it. */
const cited = [...page.matchAll(/`((?:apps|libs|docs|infra|native|tests|tools)\/[^`]+)`((?:\s“[^”]+”)*)/g)].map(
  ([, file = '', names = '']) => ({ file, names: [...names.matchAll(/“([^”]+)”/g)].map(([, name = '']) => name) }),
);

describe('docs/evidence.md', () => {
  it('cites files that are there', () => {
    expect(cited.length).toBeGreaterThan(80);
    expect(cited.map(({ file }) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('cites tests by names that they have', () => {
    const wrong = cited.flatMap(({ file, names }) => {
      if (names.length === 0 || !existsSync(join(root, file))) return [];
      // A quote in a name may be spelled with a backslash in the source.
      const source = readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'");
      return names.filter((name) => !source.includes(name)).map((name) => `${file}: ${name}`);
    });
    expect(wrong).toEqual([]);
    expect(cited.flatMap(({ names }) => names).length).toBeGreaterThan(120);
  });

  it('says of each test file it cites which of its tests it means, where there are more than a few', () => {
    const bare = cited.filter(({ file, names }) => file.endsWith('.test.ts') && names.length === 0);
    expect(bare.map(({ file }) => file)).toEqual(['libs/verify/src/frozen.test.ts', 'tests/journey/printed.test.ts']);
  });

  it('leaves no claim without something that shows it', () => {
    const rows = page.split('\n').filter((line) => /^\| (?!claim |---)/.test(line));
    expect(rows.length).toBeGreaterThan(50);
    expect(rows.filter((row) => !/`/.test(row.split('|')[2] ?? ''))).toEqual([]);
  });
});
