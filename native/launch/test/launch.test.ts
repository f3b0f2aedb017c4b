// What the launcher takes for a plan and whom it trusts. What it makes of a plan is tested in libs/confine.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, closeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '..');
const built = spawnSync(process.execPath, [join(folder, 'build.mjs'), '--sanitize'], { encoding: 'utf8' });
const builds = ['nd7-launch', 'nd7-launch-sanitized'].map((name) => [name, join(folder, 'build', name)] as const);

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'nd7-launch-'));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Said {
  code: number | null;
  stderr: string;
}

function run(launcher: string, plan: Buffer | undefined, args = ['3']): Said {
  const file = join(scratch, 'plan');
  writeFileSync(file, plan ?? '');
  const fd = openSync(file, 'r');
  try {
    const ended = spawnSync(launcher, args, {
      stdio: ['ignore', 'pipe', 'pipe', fd],
      encoding: 'utf8',
      timeout: 20_000,
    });
    return { code: ended.status, stderr: ended.stderr };
  } finally {
    closeSync(fd);
  }
}

const u32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeUInt32LE(value, i * 4));
  return bytes;
};
const record = (type: number, ...body: (Buffer | string)[]): Buffer => {
  const bytes = Buffer.concat(body.map((part) => Buffer.from(part)));
  return Buffer.concat([u32(type, bytes.length), bytes]);
};
const allow = Buffer.from([6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
/** The records of a plan that is whole: flags, Landlock, folder, program, filter. */
const whole = [record(1, u32(0)), record(2, u32(1)), record(3, '/\0'), record(4, 'true\0'), record(6, allow)];
const plan = (records: Buffer[], { version = 4, size = 0, magic = 'nd7-plan' } = {}): Buffer => {
  const body = Buffer.concat(records);
  return Buffer.concat([Buffer.from(magic), u32(version, 16 + body.length + size), body]);
};
const without = (index: number, ...more: Buffer[]): Buffer => plan([...whole.filter((_, i) => i !== index), ...more]);

it('compiles without a warning, also with the sanitizers', () => {
  expect([built.status, built.stderr]).toEqual([0, '']);
});

it.each([
  ['fuzz', 1],
  ['fuzz', 2],
  ['fuzz', Math.floor(Math.random() * 2 ** 31)],
  ['exec-fuzz', 1],
  ['exec-fuzz', Math.floor(Math.random() * 2 ** 31)],
  ['observe-fuzz', 1],
  ['observe-fuzz', Math.floor(Math.random() * 2 ** 31)],
])('what is read stands random bytes: %s, seed %i', (name, seed) => {
  const fuzz = spawnSync(join(folder, 'build', name), [String(seed), '40000'], { encoding: 'utf8', timeout: 100_000 });
  expect([seed, fuzz.status, fuzz.stderr]).toEqual([seed, 0, '']);
});

describe.each(builds)('%s', (_name, launcher) => {
  it.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'ended before its end'],
    ['another magic', plan(whole, { magic: 'nd7-pla!' }), 'no plan of this version'],
    ['another version', plan(whole, { version: 1 }), 'no plan of this version'],
    ['less than it says', plan(whole, { size: 4 }), 'ended before its end'],
    ['a size beyond all measure', plan(whole, { size: 0x7fffff00 }), 'no plan of this version'],
    ['a record cut short', plan([...whole, Buffer.from([1, 0, 0])]), 'cut short'],
    ['a record longer than the plan', plan([...whole, u32(4, 100)]), 'longer than the plan'],
    ['a record nobody knows', plan([...whole, record(99)]), 'a record is unknown'],
    ['no flags', without(0), 'no flags'],
    ['flags twice', plan([...whole, record(1, u32(0))]), 'twice'],
    ['a flag nobody knows', without(0, record(1, u32(1 << 20))), 'flag is unknown'],
    ['no Landlock', without(1), 'Landlock'],
    ['no folder', without(2), 'no working folder'],
    ['a folder with ..', without(2, record(3, '/tmp/..\0')), 'plain absolute path'],
    ['no program', without(3), 'no program'],
    ['an empty program', without(3, record(4, '\0')), 'no program'],
    ['a program without an end', without(3, record(4, 'true')), 'no string'],
    ['a program with a NUL in it', without(3, record(4, 'tr\0ue\0')), 'no string'],
    ['no filter', without(4), 'no filter'],
    ['half an instruction', without(4, record(6, allow.subarray(0, 4))), 'whole instructions'],
    ['more instructions than the kernel takes', without(4, record(6, Buffer.alloc(8 * 4097))), 'too many'],
    ['a variable without a name', plan([...whole, record(5, '=x\0')]), 'no NAME=value'],
    ['a relative path of the view', plan([...whole, record(16, u32(0), 'a\0')]), 'plain absolute path'],
    ['the root in the view', plan([...whole, record(18, u32(0), '/\0')]), 'root itself'],
    ['an attribute nobody knows', plan([...whole, record(16, u32(2), '/a\0')]), 'attribute'],
    ['a scratch without a size', plan([...whole, record(19, u32(0, 0o700, 0), '/a\0')]), 'no such mode or size'],
    ['a show without a source', plan([...whole, record(17, u32(0), '/a\0')]), 'plain absolute path'],
    ['a rule that grants nothing', plan([...whole, record(9, u32(0, 0), '/a\0')]), 'grants nothing'],
    ['a listener on no port', plan([...whole, record(10, u32(0, 0, 0))]), 'no port'],
    ['a listener of a kind nobody knows', plan([...whole, record(10, u32(0, 80, 2))]), 'no port'],
    [
      'more listeners than it makes',
      plan([...whole, ...Array<Buffer>(65).fill(record(10, u32(0, 80, 0)))]),
      'too many',
    ],
    ['listeners without a channel', plan([...whole, record(10, u32(0, 80, 0))]), 'no channel'],
    ['a route to everywhere', plan([...whole, record(13, u32(0, 0))]), 'too wide'],
    ['a route of more bits than there are', plan([...whole, record(13, u32(0, 33))]), 'too wide'],
    ['more routes than it makes', plan([...whole, ...Array<Buffer>(33).fill(record(13, u32(0, 8)))]), 'too many'],
    ['an empty table of names', plan([...whole, record(11)]), 'table of names'],
    ['a table of names twice', plan([...whole, record(11, 'x'), record(11, 'x')]), 'table of names'],
    ['a table without a channel', plan([...whole, record(11, 'x')]), 'no channel to its front'],
    ['a self-test without a canary', without(0, record(1, u32(8))), 'self-test'],
  ])('refuses %s', (_what, bytes, said) => {
    const { code, stderr } = run(launcher, bytes);
    expect([code, stderr]).toEqual([125, expect.stringContaining(said)]);
    expect(stderr).not.toContain('runtime error');
  });

  it.each([[[]], [['0']], [['x']], [['3', '4']], [['-3']], [['3x']], [['99999999999999999999']]])(
    'refuses the command line %j',
    (args) => {
      expect(run(launcher, plan(whole), args)).toMatchObject({ code: 125, stderr: expect.stringContaining('usage') });
    },
  );

  it('refuses a descriptor that is not open', () => {
    expect(run(launcher, plan(whole), ['77'])).toMatchObject({ code: 125 });
  });

  it('refuses to work where others can change it or its folder', () => {
    const own = join(scratch, 'own');
    mkdirSync(own, { recursive: true, mode: 0o755 });
    const copy = join(own, 'nd7-launch');
    copyFileSync(launcher, copy);
    for (const [folderMode, fileMode] of [
      [0o755, 0o775],
      [0o777, 0o755],
    ] as const) {
      chmodSync(copy, fileMode);
      chmodSync(own, folderMode);
      expect(run(copy, plan(whole))).toMatchObject({
        code: 125,
        stderr: expect.stringContaining('can be changed by other users'),
      });
    }
  });

  it('says what the kernel gives, each step tried', () => {
    const probe = spawnSync(launcher, ['--probe'], { encoding: 'utf8' });
    expect(probe.stdout).toMatch(
      /^kernel\t\S+ \S+\nlandlock\t\d+\nfilter\tyes\nnotify\t(yes|no)\nlooking\tok\nnamespaces\t/,
    );
  });
});
