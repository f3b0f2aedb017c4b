// The rules of the house that no type can hold: what is green, who stamps a proof, which file opens which library.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const SRC = join(import.meta.dirname, '..');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => /\.(ts|tsx|css)$/.test(file) && !file.endsWith('.test.ts'),
);
const text = (file: string) => readFileSync(join(SRC, file), 'utf8');
const holding = (pattern: RegExp, among = files) => among.filter((file) => pattern.test(text(file))).sort();

it('green is drawn in one stylesheet, and its classes by one component', () => {
  expect(holding(/--ok\b/)).toEqual(['styles/tokens.css', 'ui/proof.module.css']);
  expect(holding(/proof\.module\.css'/)).toEqual(['ui/Proof.tsx']);
  const greens = /light-dark\(\s*#116b3c|#56c890|#e2f3e9|#10291f|\bgreen\b|seagreen|limegreen/;
  const styles = files.filter((file) => file.endsWith('.css'));
  expect(styles.filter((file) => greens.test(text(file).replaceAll(/\/\*[^]*?\*\//g, '')))).toEqual([
    'styles/tokens.css',
  ]);
});

it('the green circle is drawn for a proof, or where a verdict is good by one', () => {
  expect(holding(/v-ok/)).toEqual(['pages/verification/Verdicts.tsx', 'ui/Proof.tsx', 'ui/drawings.tsx']);
});

it('only the worker’s client stamps what the worker made, and only it starts a worker', () => {
  expect(holding(/\bstamp\b/)).toEqual(['check/proofs.ts', 'check/worker-client.ts']);
  expect(holding(/new Worker\(|createPolicy\(/)).toEqual(['check/worker-client.ts']);
});

it('nothing but the worker verifies', () => {
  const verifying = /from '@nd7\/(verify|blake3|tlog|receipt|segment|chain)'/;
  const page = files.filter((file) => !file.startsWith('worker/') && /\.tsx?$/.test(file));
  const values = page.filter((file) =>
    text(file)
      .split('\n')
      .some((line) => verifying.test(line) && !line.startsWith('import type')),
  );
  expect(values).toEqual([]);
});

it.each([
  ['@base-ui/react', 'ui/base.tsx'],
  ['@tanstack/react-query', 'ui/query.ts'],
  ['@tanstack/react-virtual', 'ui/virtual.ts'],
])('%s has one door', (library, door) => {
  expect(holding(new RegExp(`from '${library}`))).toEqual([door]);
});

it('the router has one door, and the file that registers its routes', () => {
  expect(holding(/'@tanstack\/react-router'/)).toEqual(['routes.tsx', 'ui/router.ts']);
});

it('no markup is made from text, no style stands in markup, and no link is made of an agent’s words', () => {
  expect(
    holding(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|srcdoc/i),
  ).toEqual([]);
  expect(holding(/<style|styled\(/)).toEqual([]);
  // The virtual list places its rows through the CSSOM, which the policy allows.
  expect(holding(/style=/)).toEqual(['pages/session/Timeline.tsx']);
  expect(holding(/<a\s|window\.open|href=/)).toEqual(['shell/Shell.tsx']);
});

/** Sheets that their component hands on to others, and the name it does so under. */
const HANDED_ON: Record<string, string> = { 'ui/controls.module.css': 'controls', 'ui/layout.module.css': 'layout' };

function classesOf(sheet: string): Set<string> {
  const bare = text(sheet)
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/:global\([^)]*\)/g, '')
    .replaceAll(/content:[^;]*;/g, '');
  return new Set([...bare.matchAll(/\.([a-zA-Z][\w-]*)/g)].map((match) => match[1] ?? ''));
}

/** What code takes from a sheet; `all` where a class is picked by a value. */
function usesOf(sheet: string): { names: Set<string>; all: boolean } {
  const uses = { names: new Set<string>(), all: false };
  const collect = (source: string, alias: string) => {
    for (const match of source.matchAll(new RegExp(`\\b${alias}\\.([a-zA-Z]\\w*)`, 'g')))
      if (match[1] !== 'js' && match[1] !== 'module') uses.names.add(match[1] ?? '');
    uses.all ||= new RegExp(`\\b${alias}\\[`).test(source);
  };
  for (const file of files.filter((one) => /\.tsx?$/.test(one))) {
    const source = text(file);
    for (const [, alias, path] of source.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)) {
      if (relative(SRC, join(SRC, dirname(file), path ?? '')) === sheet) collect(source, alias ?? '');
    }
    const handed = HANDED_ON[sheet];
    if (handed !== undefined && new RegExp(`import \\{[^}]*\\b${handed}\\b`).test(source)) collect(source, handed);
  }
  return uses;
}

it('every class that is used is there, and every class that is there is used', () => {
  const wrong: string[] = [];
  for (const sheet of files.filter((file) => file.endsWith('.module.css'))) {
    const [there, { names, all }] = [classesOf(sheet), usesOf(sheet)];
    for (const name of names) if (!there.has(name)) wrong.push(`${sheet}: .${name} is used and not there`);
    for (const name of there) if (!names.has(name) && !all) wrong.push(`${sheet}: .${name} is there and not used`);
  }
  expect(wrong).toEqual([]);
});
