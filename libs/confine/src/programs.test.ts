// Programs by their names: what was read before is believed where nothing has changed since, and only there.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProgramsOnPath } from './programs.js';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'nd7-programs-'));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});
const has = (name: string, path = base): boolean => new ProgramsOnPath(path).has(name);
/** As if its names had been there for long. */
const settle = async (folder: string): Promise<void> => {
  utimesSync(folder, 1, 1);
  // Its ctime cannot be set.
  await new Promise((done) => setTimeout(done, 5_100));
};

it('finds what lies in any folder of a PATH, and nothing by a relative one', () => {
  const [one, other] = ['one', 'other'].map((name) => join(base, name)) as [string, string];
  for (const folder of [one, other]) mkdirSync(folder);
  writeFileSync(join(other, 'tool'), '');
  expect(['tool', 'to'].map((name) => has(name, `${one}:${base}/none:${other}`))).toEqual([true, false]);
  expect(has('tool', 'other:.')).toBe(false);
});

it('sees at once what comes, goes and is renamed in a folder that it has read before', async () => {
  writeFileSync(join(base, 'first'), '');
  await settle(base);
  expect([has('first'), has('second')]).toEqual([true, false]);
  writeFileSync(join(base, 'second'), '');
  expect([has('first'), has('second')]).toEqual([true, true]);
  renameSync(join(base, 'first'), join(base, 'third'));
  expect([has('first'), has('third')]).toEqual([false, true]);
  rmSync(join(base, 'third'));
  expect(has('third')).toBe(false);
}, 30_000);

it('sees another folder in the place of one that it has read, and the end of what a link leads to', async () => {
  const folder = join(base, 'bin');
  mkdirSync(folder);
  symlinkSync(join(base, 'target'), join(folder, 'tool'));
  writeFileSync(join(base, 'target'), '');
  await settle(folder);
  expect(has('tool', folder)).toBe(true);
  rmSync(join(base, 'target'));
  expect(has('tool', folder)).toBe(false);
  const other = join(base, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'new'), '');
  utimesSync(other, 1, 1);
  renameSync(folder, join(base, 'old'));
  renameSync(other, folder);
  expect(has('new', folder)).toBe(true);
}, 30_000);

it('asks for the name where a folder cannot be listed', () => {
  const folder = join(base, 'bin');
  mkdirSync(folder);
  writeFileSync(join(folder, 'tool'), '');
  chmodSync(folder, 0o311);
  const isRoot = process.geteuid?.() === 0;
  // Root lists all: as somebody else for a moment.
  if (isRoot) chmodSync(base, 0o711);
  if (isRoot) process.seteuid?.(65534);
  try {
    expect(() => readdirSync(folder)).toThrow('EACCES');
    expect([has('tool', folder), has('none', folder)]).toEqual([true, false]);
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
});
