// What nd7 runs outside while a session lives is nothing that a session has made.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TestBook, removeMade } from '../grants/book.fixture.js';
import { removeThrowAways } from '../testing/recorder.fixture.js';
import { OutsidePrograms } from './outside-programs.js';
import { Reach } from './reach.js';
import { TestSession } from './session.fixture.js';

afterAll(() => {
  removeMade();
  removeThrowAways();
});

const TOOL = '#!/bin/sh\necho key\n';

/** A home with a program outside of the project, by path and by name, and a session that is about to begin. */
function place(extra: (project: string) => Record<string, string> = () => ({})) {
  const { home, project, book } = new TestBook();
  const tools = join(home, 'out/bin');
  for (const folder of [tools, join(project, 'bin')]) mkdirSync(folder);
  const tool = join(tools, 'tool');
  writeFileSync(tool, TOOL, { mode: 0o755 });
  const environment = { PATH: `${project}/bin:bin::${tools}:/usr/bin:/bin`, HOME: home, ...extra(project) };
  const open = (): { reach: Reach; programs: OutsidePrograms } => {
    const reach = Reach.open(join(home, '.nd7'), `run-${readdirSync(home).length}`, book.ruleset);
    return { reach, programs: new OutsidePrograms(reach, environment) };
  };
  return { home, project, book, tools, tool, open };
}

it('a program is looked for where no session may write, and its environment names no such place', () => {
  const { project, tools, tool, home, open } = place((its) => ({
    NODE_OPTIONS: `--import=file://${its}/x.js`,
    OLDPWD: its,
    PYTHONPATH: '/usr/lib/x:~/p/lib',
    BASH_ENV: '$HOME/p/.rc',
    LD_PRELOAD: './p.so',
    TOKEN: 'a/b:c',
    SSH_AUTH_SOCK: '/private/tmp/agent',
  }));
  writeFileSync(join(project, 'bin/tool'), TOOL, { mode: 0o755 });
  const { programs } = open();
  programs.find('tool');
  const { program, args, environment } = programs.ready(['tool', '--of', '/etc/x']);
  expect([program, args]).toEqual([tool, ['--of', '/etc/x']]);
  // The temporary folder outside is not the one that the session has.
  expect(environment).toEqual({
    PATH: `${tools}:/usr/bin:/bin`,
    HOME: home,
    LD_PRELOAD: './p.so',
    TOKEN: 'a/b:c',
    SSH_AUTH_SOCK: '/private/tmp/agent',
  });
});

/** What is against a command that is named at the start, after something has happened. */
function against(
  said: readonly string[],
  prepare: (at: ReturnType<typeof place>) => void,
  meanwhile: (at: ReturnType<typeof place>, reach: Reach) => void = () => undefined,
): string {
  const at = place();
  prepare(at);
  const { reach, programs } = at.open();
  const command = said.map((word) => word.replace('HOME', at.home).replace('PROJECT', at.project));
  programs.find(command[0] ?? '');
  meanwhile(at, reach);
  try {
    programs.ready(command);
    return '';
  } catch (error) {
    return (error as Error).message.replaceAll(at.home, '~');
  }
}

const nothing = (): void => undefined;
const script = (at: ReturnType<typeof place>, first: string): void =>
  writeFileSync(at.tool, `${first}\n`, { mode: 0o755 });

it.each<[string, readonly string[], (at: ReturnType<typeof place>) => void, string]>([
  ['a path that is not absolute', ['./tool'], nothing, 'its path is not absolute'],
  ['a path that begins nowhere', ['out/bin/tool'], nothing, 'its path is not absolute'],
  ['one in the project', ['PROJECT/bin/tool'], nothing, 'a session may write to it'],
  ['one that is not there', ['HOME/out/none'], nothing, 'is not there'],
  ['a name that nothing has', ['nd7-none'], nothing, 'is in no folder of PATH'],
  [
    'a name that only the project has',
    ['own'],
    ({ project }) => writeFileSync(join(project, 'bin/own'), TOOL, { mode: 0o755 }),
    'is in no folder of PATH',
  ],
  [
    'a link into the project',
    ['HOME/out/led'],
    ({ home, project }) => symlinkSync(join(project, 'bin/tool'), join(home, 'out/led')),
    'a session may write to it',
  ],
  [
    'a way through a link of the project’s',
    ['HOME/out/by/sh'],
    ({ home, project }) => {
      symlinkSync('/usr/bin', join(project, 'turned'));
      symlinkSync('../p/../p/turned', join(home, 'out/by'));
    },
    'a session may write to it',
  ],
  [
    'an interpreter in the project',
    ['tool'],
    (at) => script(at, `#!${at.project}/bin/sh`),
    'a session may write to it',
  ],
  ['one that env finds there', ['tool'], (at) => script(at, '#!/usr/bin/env -S own -x'), 'is in no folder of PATH'],
  ['a script of the project for an interpreter', ['sh', 'PROJECT/x.sh'], nothing, 'names what a session may write to'],
  ['one in a text for a shell', ['sh', '-c', 'exec "PROJECT/x"'], nothing, 'names what a session may write to'],
  ['one in an option', ['tool', '--rc=~/p/rc'], nothing, 'names what a session may write to'],
  ['a URL is no path', ['tool', 'https://example.com/x'], nothing, ''],
])('a command from the start: %s', (_, said, prepare, why) => {
  const found = against(said, prepare);
  if (why === '') expect(found).toBe('');
  else expect(found).toContain(why);
});

it.each<[string, (at: ReturnType<typeof place>, reach: Reach) => void, string]>([
  ['nothing', nothing, ''],
  ['a grant of its folder, over or not', ({ tools }, reach) => reach.lets({ path: tools, below: true }), 'may write'],
  ['a grant of a folder above', ({ home }, reach) => reach.lets({ path: join(home, 'out'), below: true }), 'may write'],
  ['a grant of the very file', ({ tool }, reach) => reach.lets({ path: tool, below: false }), 'may write'],
  ['a grant of its interpreter', (_, reach) => reach.lets({ path: '/bin', below: true }), 'may write'],
  ['a grant of a file beside it', ({ tools }, reach) => reach.lets({ path: join(tools, 'x'), below: false }), ''],
  ['it was written', ({ tool }) => appendFileSync(tool, 'echo more\n'), 'is not what it was'],
  ['it has another mode', ({ tool }) => chmodSync(tool, 0o777), 'is not what it was'],
  [
    'it was written by a second name that it has in the project',
    ({ tool, project }) => {
      linkSync(tool, join(project, 'second'));
      appendFileSync(join(project, 'second'), '\n');
    },
    'is not what it was',
  ],
  [
    'another session that begins may write there',
    ({ home, tools, book }) => void Reach.open(join(home, '.nd7'), 'other', withNode(book.ruleset, tools)),
    'may write',
  ],
  [
    'another session was let write there, and is over',
    ({ home, tools, book }) => {
      const other = Reach.open(join(home, '.nd7'), 'other', book.ruleset);
      other.lets({ path: tools, below: true });
      other.close();
    },
    'may write',
  ],
  [
    'what another session tells cannot be read',
    ({ home }) => writeFileSync(join(home, '.nd7/run/writes/other'), '{"pid":1'),
    'cannot be read',
  ],
])('a command while the session lives, after: %s', (_, meanwhile, why) => {
  const found = against(['tool'], nothing, meanwhile);
  if (why === '') expect(found).toBe('');
  else expect(found).toContain(why);
});

it('a command that was not looked for when the session began does not run', () => {
  expect(() => place().open().programs.ready(['sh'])).toThrow('was not looked for when the session began');
});

it('what sessions were let write is forgotten when none lives, and not before', () => {
  const { home, book } = place();
  const folder = join(home, '.nd7/run/writes');
  const open = (name: string): Reach => Reach.open(join(home, '.nd7'), name, book.ruleset);
  const [a, b] = [open('a'), open('b')];
  a.close();
  const c = open('c');
  expect(readdirSync(folder)).toEqual(['a', 'b', 'c']);
  b.close();
  c.close();
  // One whose front was killed, and one that was torn.
  writeFileSync(join(folder, 'd'), `${JSON.stringify({ pid: 2 ** 22 + 1, start: '1', nodes: [] })}\n`);
  writeFileSync(join(folder, 'e'), '{"pid":1');
  open('f');
  expect(readdirSync(folder)).toEqual(['f']);
});

type Rules = TestBook['book']['ruleset'];
const withNode = (ruleset: Rules, path: string): Rules => {
  const [first] = ruleset.files;
  if (first === undefined) throw new Error('no rules');
  return { ...ruleset, files: [...ruleset.files, { ...first, path, access: { read: true, write: true, exec: true } }] };
};

const onLinux = process.platform === 'linux' ? it : it.skip;

onLinux(
  'what a session was let write stays known where it ended while one began beside it and a third one looked',
  async () => {
    const { home, book } = place();
    const folder = join(home, '.nd7/run/writes');
    const open = (name: string): Reach => Reach.open(join(home, '.nd7'), name, book.ruleset);
    const ends = open('ends');
    // The first that is looked at: it is waited for until somebody writes.
    spawnSync('mkfifo', [join(folder, 'a-slow')]);
    const script = `const { Reach } = await import(${JSON.stringify(join(import.meta.dirname, '../../dist/confine/reach.js'))});
    Reach.open(${JSON.stringify(join(home, '.nd7'))}, 'looks', { files: [] });`;
    const third = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
    const over = once(third, 'exit');
    // Opens when the other one reads.
    const slow = await openFile(join(folder, 'a-slow'), 'w');
    copyFileSync(join(folder, 'ends'), join(folder, 'begins'));
    ends.close();
    await slow.close();
    expect(await over).toEqual([0, null]);
    expect(readdirSync(folder)).toContain('ends');
  },
);

onLinux.each(['tool', './tool', 'PROJECT/tool'])(
  'a credential’s command (%s) that a session has made is not run outside',
  async (said) => {
    const policy = (project: string): Record<string, unknown> => ({
      network: { allow: ['key.example.com'] },
      credentials: [
        {
          name: 'key',
          hosts: ['key.example.com'],
          way: 'endpoint',
          endpointVariable: 'KEY_URL',
          from: { command: [said.replace('PROJECT', project)] },
        },
      ],
    });
    const session = new TestSession(policy(''));
    session.place('key.example.com', 443, 1);
    writeFileSync(join(session.nd7Home, 'policy.jsonc'), JSON.stringify({ nd7: 1, ...policy(session.project) }));
    session.environment['PATH'] = `${session.project}:${session.environment['PATH'] ?? '/usr/bin:/bin'}`;
    const ran = join(session.project, 'ran');
    const make = `printf '#!/bin/sh\\necho key; : > ${ran}\\n' > tool; chmod +x tool; curl -sS "$KEY_URL/"`;
    const { stdout } = await session.run(['sh', '-c', make]);
    session.close();
    expect([stdout, existsSync(ran)]).toEqual([expect.stringContaining('could not be read outside'), false]);
  },
);

onLinux.each([
  ['was let write nothing of it', false],
  ['was let write its folder', true],
])('a credential’s command that was there before, in a session that %s', async (_, isLet) => {
  const session = new TestSession({});
  const tools = join(session.home, 'tools');
  const ran = join(session.home, 'ran');
  mkdirSync(tools);
  writeFileSync(join(tools, 'tool'), `#!/bin/sh\n: > ${ran}\necho key\n`, { mode: 0o755 });
  const from = { command: ['tool'] };
  const credential = { name: 'key', hosts: ['key.example.com'], way: 'endpoint', endpointVariable: 'KEY_URL', from };
  writeFileSync(
    join(session.nd7Home, 'policy.jsonc'),
    JSON.stringify({ nd7: 1, network: { allow: ['key.example.com'] }, credentials: [credential] }),
  );
  session.place('key.example.com', 443, 1);
  session.environment['PATH'] = `${tools}:${session.environment['PATH'] ?? '/usr/bin:/bin'}`;
  const wait = join(session.project, 'go');
  const { stdout } = await session.run(
    ['sh', '-c', `while [ ! -e ${wait} ]; do sleep 0.01; done; curl -sS "$KEY_URL/"`],
    () => {
      if (isLet) session.reach?.lets({ path: tools, below: true });
      writeFileSync(wait, '');
      return Promise.resolve();
    },
  );
  session.close();
  expect([stdout.includes('could not be read outside'), existsSync(ran)]).toEqual([isLet, !isLet]);
});

onLinux('a credential’s file that a session may put another in the place of is not read', async () => {
  const session = new TestSession({
    network: { allow: ['key.example.com'] },
    credentials: [
      {
        name: 'key',
        hosts: ['key.example.com'],
        way: 'endpoint',
        endpointVariable: 'KEY_URL',
        from: { file: './token' },
      },
    ],
  });
  session.place('key.example.com', 443, 1);
  writeFileSync(join(session.home, 'other'), 'held-outside');
  const { stdout } = await session.run(['sh', '-c', 'ln -s ../other token; curl -sS "$KEY_URL/"']);
  session.close();
  expect(stdout).toContain('could not be read outside');
});

onLinux(
  'a session that cannot read what another one tells starts all the same, and those beside it read no half of a file',
  () => {
    const { home, book } = place();
    const folder = join(home, '.nd7/run/writes');
    const first = Reach.open(join(home, '.nd7'), 'first', book.ruleset);
    // As it stands while another one is being made.
    writeFileSync(join(folder, '.second'), '');
    expect(first.isOpen('/usr/bin/env')).toBe(false);
    writeFileSync(join(folder, 'torn'), '');
    expect(() => first.isOpen('/usr/bin/env')).toThrow('cannot be read');
    expect(first.isOpenToOwn('/usr/bin/env')).toBe(false);
  },
);
