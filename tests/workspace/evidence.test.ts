// docs/evidence.md names what shows each claim: every file and every test name on it must exist, and every kind of test must be named on it. So in docs/peers.md.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs/evidence.md'), 'utf8');
const threats = readFileSync(join(root, 'docs/threat-model.md'), 'utf8');
/** A file in backticks and the names in “ ” that follow it. */
const citedIn = (text: string) =>
  [...text.matchAll(/`((?:apps|libs|docs|infra|native|tests|tools)\/[^`]+)`((?:\s“[^”]+”)*)/g)].map(
    ([, file = '', names = '']) => ({ file, names: [...names.matchAll(/“([^”]+)”/g)].map(([, name = '']) => name) }),
  );
/** Names of tests that the file cited for them does not have. */
const wrongIn = (citations: ReturnType<typeof citedIn>) =>
  citations.flatMap(({ file, names }) => {
    if (names.length === 0 || !existsSync(join(root, file))) return [];
    // A quote in a name may be spelled with a backslash in the source.
    const source = readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'");
    return names.filter((name) => !source.includes(name)).map((name) => `${file}: ${name}`);
  });
const cited = citedIn(page);

describe('docs/evidence.md', () => {
  it('cites files that are there', () => {
    expect(cited.length).toBeGreaterThan(80);
    expect(cited.map(({ file }) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('cites tests by names that they have', () => {
    expect(wrongIn(cited)).toEqual([]);
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

describe('docs/threat-model.md', () => {
  it('has a test for each attempt, or says that it is open', () => {
    const rows = threats.split('\n').filter((line) => /^\| (?!actor |---)/.test(line));
    expect(rows.length).toBeGreaterThan(20);
    const bare = rows.filter((row) => citedIn(row.split('|').at(-2) ?? '').every(({ names }) => names.length === 0));
    expect(bare.map((row) => row.split('|')[2]?.trim())).toEqual([
      'rewrites the database and signs again with the real key',
    ]);
    const all = citedIn(threats);
    expect(all.map(({ file }) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
    expect(wrongIn(all)).toEqual([]);
  });
});

describe('docs/peers.md', () => {
  const page = readFileSync(join(root, 'docs/peers.md'), 'utf8');
  it('names for each report and escape a test that is there, a probe, or says that it was not tried', () => {
    const all = citedIn(page);
    expect(all.length).toBeGreaterThan(40);
    expect(all.map(({ file }) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
    expect(wrongIn(all)).toEqual([]);
    const probes = readFileSync(join(root, 'tests/escape/inside.sh'), 'utf8');
    const [, ...tables] = page.split(/^## (?:Reports|Escapes).*$/m);
    const rows = tables.flatMap((text) => text.split('\n').filter((line) => /^\| (?!report |escape |---)/.test(line)));
    expect(rows.length).toBe(25 + 21);
    const named = rows.map((row) => row.split('|').at(-2) ?? '');
    const bare = named.filter((cell) => !/`(?:apps|libs|tests|native)\/|probes? `|\*\*not/.test(cell));
    expect(bare).toEqual([]);
    const said = named.flatMap((cell) => [...cell.matchAll(/`([a-z0-9]+(?:-[a-z0-9]+)+)`/g)].map(([, probe]) => probe));
    expect(said.filter((probe) => !new RegExp(`^[pw] ${probe} `, 'm').test(probes))).toEqual([]);
  });
});
