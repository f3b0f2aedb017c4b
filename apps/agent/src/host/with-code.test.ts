// Code that is kept between starts (bin/with-code.js): it is taken for the very script that it was made of, and from nobody else.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

const LOADER = join(import.meta.dirname, '../../bin/with-code.js');
const KEEP = "globalThis[Symbol.for('nd7.keep-code')]";

let folder: string;
beforeEach(() => {
  folder = throwAway();
});
afterEach(removeThrowAways);

const script = (): string => join(folder, 'run.script.js');
const code = (): string => join(folder, 'run.code');

/** A script of a length that does not depend on the word: the length is all that V8 itself compares. */
function write(word: 'one' | 'two'): void {
  writeFileSync(
    script(),
    `(function (exports, require, module, __filename, __dirname) { const say = () => '${word}'; process.stdout.write(say() + (${KEEP} ? ' new' : '')); if (process.argv[2] === 'keep') ${KEEP}?.(); })`,
  );
}

function start(keep = '', options: string[] = []): string {
  const main = join(folder, 'main.mjs');
  writeFileSync(main, `import { start } from ${JSON.stringify(LOADER)};\nstart(${JSON.stringify(folder)});`);
  const { stdout, stderr, status } = spawnSync(process.execPath, [...options, main, keep], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

it('is kept when it is asked for, and taken by the next start', () => {
  write('one');
  expect([start(), existsSync(code())]).toEqual(['one new', false]);
  expect([start('keep'), existsSync(code())]).toEqual(['one new', true]);
  expect(start()).toBe('one');
});

it('is not kept by a Node with options of its own, nor taken where they make other code', () => {
  write('one');
  expect([start('keep', ['--no-lazy']), existsSync(code())]).toEqual(['one new', false]);
  start('keep');
  expect(start('', ['--no-lazy'])).toBe('one new');
});

it.each<[string, () => void]>([
  [
    'of another script that took its place, as long and as old',
    () => {
      const { mtime } = statSync(script());
      write('two');
      spawnSync('touch', ['-d', mtime.toISOString(), script()]);
      expect(statSync(script()).mtime).toEqual(mtime);
    },
  ],
  ['that was cut short', () => writeFileSync(code(), readFileSync(code()).subarray(0, -100))],
  [
    'with a byte that changed',
    () => {
      const bytes = readFileSync(code());
      bytes.writeUInt8(bytes.readUInt8(bytes.length - 50) ^ 1, bytes.length - 50);
      writeFileSync(code(), bytes);
    },
  ],
  ['that is empty', () => writeFileSync(code(), '')],
  ['that others may write to', () => chmodSync(code(), 0o666)],
  [
    'behind a link',
    () => {
      renameSync(code(), `${code()}.moved`);
      symlinkSync(`${code()}.moved`, code());
    },
  ],
  ...(process.geteuid?.() === 0
    ? [['of another user', () => chownSync(code(), 1234, 1234)] as [string, () => void]]
    : []),
])('code %s is left alone', (_what, change) => {
  write('one');
  start('keep');
  change();
  const word = readFileSync(script(), 'utf8').includes("'two'") ? 'two' : 'one';
  expect(start()).toBe(`${word} new`);
});
