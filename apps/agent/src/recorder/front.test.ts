// The command on PATH: where it is put, what it leaves alone, and how it goes again.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';
import { planFrontLink, removeFrontLink } from './front.js';
import { installNative } from './install-native.js';

let user: string;
let home: string;
beforeEach(() => {
  user = join(throwAway(), 'a user ünï');
  home = join(user, '.nd7');
  mkdirSync(join(user, '.claude'), { recursive: true });
});
afterEach(() => {
  if (existsSync(home)) nd7(['recorder', '--stop']);
  removeThrowAways();
});

function nd7(args: string[], more: { path?: string; uid?: number; program?: string[] } = {}) {
  const [program = '', ...words] = more.program ?? [process.execPath, BIN];
  const ran = spawnSync(program, [...words, ...args], {
    cwd: user,
    encoding: 'utf8',
    env: { PATH: more.path ?? '/usr/bin:/bin', HOME: user },
    ...(more.uid === undefined ? {} : { uid: more.uid, gid: more.uid }),
  });
  return { status: ran.status, out: ran.stdout, err: ran.stderr };
}
const link = (): string => join(user, '.local/bin/nd7');

it('is linked by init, is nd7, and goes by uninstall', () => {
  const path = `${join(user, '.local/bin')}:/usr/bin:/bin`;
  const shown = nd7(['init', '--dry-run'], { path });
  expect(shown.out).toContain(`+ ${link()} -> ${home}/bin/nd7\n`);
  expect(existsSync(join(user, '.local'))).toBe(false);
  expect(nd7(['init', '--yes'], { path }).out).toContain(`The command is ${link()}.\n`);
  expect(readlinkSync(link())).toBe(join(home, 'bin/nd7'));
  expect(lstatSync(join(home, 'bin/nd7')).mode & 0o777).toBe(0o755);
  expect(nd7(['--version'], { program: [link()] })).toMatchObject({ status: 0, err: '' });
  // Twice is once.
  expect(nd7(['init', '--yes'], { path }).out).toContain(`The command stays ${link()}.\n`);
  expect(JSON.parse(nd7(['init', '--yes', '--json'], { path }).out)).toMatchObject({
    command: { path: link(), state: 'there' },
  });
  expect(nd7(['uninstall', '--dry-run']).out).toContain(`Would remove ${link()}.\n`);
  expect(existsSync(link())).toBe(true);
  expect(nd7(['uninstall']).out).toContain(`Removed ${link()}.\n`);
  expect(lstatSync(link(), { throwIfNoEntry: false })).toBeUndefined();
});

it('says how its folder comes to PATH where it is not there', () => {
  expect(nd7(['init', '--yes']).out).toContain(`export PATH="$HOME/.local/bin:$PATH"`);
});

it.each<[string, (path: string) => void]>([
  ['a program', (path) => writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })],
  ['a link to another nd7', (path) => symlinkSync('/opt/nd7/bin/nd7', path)],
  ['a folder', (path) => mkdirSync(path)],
])('leaves %s by that name alone', (_what, put) => {
  mkdirSync(join(user, '.local/bin'), { recursive: true });
  put(link());
  const before = lstatSync(link());
  expect(nd7(['init', '--yes']).out).toContain(`${link()} is another program and stays: ${home}/bin/nd7 is nd7.`);
  expect(nd7(['uninstall']).status).toBe(0);
  expect(lstatSync(link())).toMatchObject({ ino: before.ino, mode: before.mode, mtimeMs: before.mtimeMs });
});

it('goes into the folder of the person’s own programs that is on PATH', () => {
  const env = (path: string): NodeJS.ProcessEnv => ({ HOME: user, PATH: path });
  const where = (path: string): unknown[] => {
    const plan = planFrontLink(home, env(path));
    return [plan?.path.slice(user.length), plan?.state, plan?.isOnPath];
  };
  expect(where('/usr/bin')).toEqual(['/.local/bin/nd7', 'make', false]);
  expect(where(`/usr/bin:${user}/bin/`)).toEqual(['/bin/nd7', 'make', true]);
  expect(where(`${user}/bin:${user}/.local/bin`)).toEqual(['/.local/bin/nd7', 'make', true]);
  expect(planFrontLink(home, { PATH: '/usr/bin' })).toBeUndefined();
  expect(removeFrontLink(home, env(''), false)).toBeUndefined();
});

it('a native program that was installed is put right again where it is another, also after sessions have linked to it', async () => {
  const path = join(home, 'bin/nd7');
  const install = async (): Promise<Buffer> => {
    expect(await installNative('nd7', path, 0o700)).toEqual({ path });
    return readFileSync(path);
  };
  const whole = await install();
  linkSync(path, `${path}.link`);
  const { ino } = lstatSync(path);
  expect([(await install()).equals(whole), lstatSync(path).ino]).toEqual([true, ino]);
  // As long, in its place and in another's.
  writeFileSync(path, Buffer.alloc(whole.length, 'x'));
  expect((await install()).equals(whole)).toBe(true);
  writeFileSync(`${path}.draft`, Buffer.alloc(whole.length, 'y'), { mode: 0o755 });
  renameSync(`${path}.draft`, path);
  expect((await install()).equals(whole)).toBe(true);
});

it('is not made with --no-command, nor where settings are named', () => {
  nd7(['init', '--yes', '--no-command']);
  nd7(['init', '--yes', '--settings', join(user, 'other.json')]);
  expect(existsSync(join(user, '.local'))).toBe(false);
  expect(readFileSync(join(user, '.claude/settings.json'), 'utf8')).toContain('hooks');
});

const UID = 54_321;
(process.geteuid?.() === 0 ? it : it.skip)('a folder that is read-only keeps nobody from being attached', () => {
  for (const folder of ['.local', '.local/bin']) mkdirSync(join(user, folder), { recursive: true });
  for (const folder of [join(user, '..'), user, join(user, '.claude'), join(user, '.local')]) {
    chownSync(folder, UID, UID);
    chmodSync(folder, 0o755);
  }
  const program = ['/usr/bin/env', process.execPath, BIN];
  if (spawnSync(process.execPath, ['-e', '0'], { uid: UID, gid: UID }).status !== 0) return; // Node lies in a closed folder
  const { status, out } = nd7(['init', '--yes'], { uid: UID, program });
  expect([status, out]).toEqual([0, expect.stringContaining('its folder is read-only') as string]);
  expect(existsSync(link())).toBe(false);
});
