import { afterAll, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSecret } from './secret.js';

const folder = mkdtempSync(join(tmpdir(), 'nd7-secret-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (content: string): string => {
  const path = join(folder, 'key');
  writeFileSync(path, content);
  return path;
};
const node = (program: string): string[] => [process.execPath, '-e', program];

it('a secret comes from a variable, a file or a command, without the white space around it', async () => {
  expect(await readSecret({ variable: 'KEY' }, { KEY: ' sk-1 ' })).toBe('sk-1');
  expect(await readSecret({ file: file('sk-2\n') }, {})).toBe('sk-2');
  expect(await readSecret({ command: node('console.log("sk-3", process.env.A)') }, { A: '$(x)' })).toBe('sk-3 $(x)');
});

it.each<[string, () => Parameters<typeof readSecret>[0], RegExp]>([
  ['a variable that is not set', () => ({ variable: 'KEY' }), /^the variable KEY is empty$/],
  ['a file that is not there', () => ({ file: join(folder, 'none') }), /^the file .* cannot be read \(ENOENT\)$/],
  ['a folder', () => ({ file: folder }), /EISDIR/],
  ['a file of anything', () => ({ file: '/dev/zero' }), /is larger than a credential/],
  ['a second line', () => ({ file: file('sk\r\nx-other: 1') }), /holds what no header can$/],
  ['a NUL', () => ({ file: file('sk\0') }), /holds what no header can$/],
  [
    'a command that fails',
    () => ({ command: node('console.log("sk-half"); process.exit(3)') }),
    /^the command .* failed \(3\)$/,
  ],
  ['a command that is not there', () => ({ command: ['/nowhere/x'] }), /failed \(ENOENT\)$/],
  [
    'a command that never stops talking',
    () => ({ command: node('setInterval(() => console.log("y".repeat(9999)), 0)') }),
    /failed \(ERR_CHILD_PROCESS_STDIO_MAXBUFFER\)$/,
  ],
])('%s is an error that shows nothing of the secret', async (_what, from, message) => {
  const failed = readSecret(from(), {});
  await expect(failed).rejects.toThrow(message);
  await expect(failed).rejects.not.toThrow(/sk-half/);
});
