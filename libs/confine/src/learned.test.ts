// What a session that learns tells of itself, with the real supervisor; and that nothing is allowed or answered otherwise by it.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { join } from 'node:path';
import { Supervision } from './observe.js';
import type { Learned } from './learned.js';
import { buildLaunchers, Machine, until, USERS } from './session.fixture.js';

beforeAll(buildLaunchers, 120_000);

const BUILT = join(import.meta.dirname, '../../../native/launch/build');

describe.each(USERS)('a session of %s that learns', (_who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(user);
    machine.learns = true;
  });
  afterEach(() => machine.close());
  const told = (what: Learned['what'], of: Machine = machine): Learned[] =>
    of.learned.filter((one) => one !== null).filter((one) => one.what === what);
  const paths = (what: Learned['what']): string[] => told(what).map(({ path }) => path);

  it('tells what is read, listed, looked at, written, run and connected to, each once, by the real path and as it was said', async () => {
    const file = machine.file('lib/file');
    machine.file('lib/other');
    const secret = machine.file('keys/secret');
    machine.hide('keys');
    symlinkSync('file', join(machine.home, 'lib/link'));
    mkdirSync(join(machine.project, 'd'));
    machine.protect('.envrc');
    const { stdout, stderr } = await machine.run(`
      for i in 1 2 3; do cat ~/lib/link; done; ls ~/lib > /dev/null; test -f ~/lib/other; cat ~/keys/secret; echo x > ~/out; echo x > d/../made
      mkdir -p d/e; mv made d/moved; rm d/moved; echo x > .envrc; cat nowhere
      python3 -c '
import socket
for a in [("127.0.0.1", 9), ("192.0.2.1", 7)]:
  s = socket.socket()
  try: s.connect(a)
  except OSError as e: print(e.errno)
s = socket.socket(); s.bind(("127.0.0.1", 4321))
try: socket.socket(socket.AF_UNIX).connect("/run/docker.sock")
except OSError as e: print(e.errno)'`);
    expect(stdout).toBe(`${'content\n'.repeat(3)}111\n101\n2\n`);
    expect(stderr.match(/No such file|Read-only|Permission denied/g)?.length).toBe(4);
    expect(told('read').filter(({ path }) => path === file)).toMatchObject([
      { said: join(machine.home, 'lib/link'), error: 0, program: 'cat' },
    ]);
    expect(paths('list')).toContain(join(machine.home, 'lib'));
    expect(told('look').map(({ said }) => said)).toContain(join(machine.home, 'lib/other'));
    expect(told('read').find(({ said }) => said === secret)).toMatchObject({ path: '', error: 2 });
    expect(paths('write')).toEqual(
      expect.arrayContaining([
        join(machine.home, 'out'),
        ...['made', 'd/moved', '.envrc'].map((name) => join(machine.project, name)),
      ]),
    );
    expect(paths('make-folder')).toEqual([join(machine.project, 'd/e')]);
    expect(paths('exec').map((path) => path.replace(/.*\//, ''))).toEqual(expect.arrayContaining(['cat', 'ls', 'mv']));
    expect(paths('dial')).toEqual(['127.0.0.1:9', '192.0.2.1:7']);
    expect(paths('bind')).toEqual(['127.0.0.1:4321']);
    expect(told('socket')).toMatchObject([{ said: '/run/docker.sock', error: 2 }]);
    // What the launcher tried before the program ran is not told.
    expect(machine.learned.filter((one) => one?.program === 'nd7-launch' && one.what !== 'exec')).toEqual([]);
    expect(machine.heard.slice(1)).toMatchObject([{ verdict: 'refused', path: join(machine.project, '.envrc') }]);
  });

  it.each(['nd7-launch', 'nd7-launch-sanitized'] as const)('answers calls as without learning (%s)', async (build) => {
    const twins = [false, true].map((learns) => Object.assign(new Machine(user, build), { learns }));
    try {
      const said = [];
      for (const twin of twins) {
        const same = join(twin.home, 'same');
        copyFileSync(join(BUILT, 'same'), same);
        chmodSync(same, 0o755);
        const { code, stderr } = await twin.run(`mkdir w; cd w; timeout 100 ${same} 11 1500 > ../said`);
        expect([code, stderr]).toEqual([0, '']);
        said.push(readFileSync(join(twin.project, 'said'), 'utf8').replaceAll(twin.base, ''));
      }
      expect(said[1]).toBe(said[0]);
      expect(told('write', twins[1]).length).toBeGreaterThan(10);
      expect(twins[0]?.learned).toEqual([]);
    } finally {
      for (const twin of twins) twin.close();
    }
  });

  it('tells once that there was more than it keeps, and goes on', async () => {
    machine.file('project/many.py', 'import os\nfor i in range(140000): os.path.exists(f"/no/{i}")\nprint("done")');
    const { stdout } = await machine.run('python3 many.py');
    expect(stdout).toBe('done\n');
    expect(machine.learned.filter((one) => one === null)).toHaveLength(1);
    expect(machine.learned.length).toBeLessThanOrEqual((1 << 17) + 1);
  });
});

describe('a frame of what was learned', () => {
  const frame = (...body: (number | string)[]): Buffer => {
    const parts = body.map((part) => {
      if (typeof part === 'string') return Buffer.from(part);
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(part);
      return bytes;
    });
    const head = Buffer.alloc(4);
    head.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0));
    return Buffer.concat([head, ...parts]);
  };
  it.each([
    ['of no such kind', frame(8, 0, 77, 0, 1, 'a\0b\0c\0')],
    ['cut short', frame(8, 0, 1, 0)],
    ['with a text too few', frame(8, 0, 1, 0, 1, 'a\0b\0')],
    ['with a text that does not end', frame(8, 0, 1, 0, 1, 'a\0b\0c')],
  ])('%s ends the session', async (_what, bytes) => {
    const channel = new PassThrough();
    const heard: unknown[] = [];
    const front = {
      judge: () => Promise.resolve({ allow: false }),
      heard: () => undefined,
      learned: (one: unknown) => heard.push(one),
    };
    new Supervision(channel, front);
    channel.write(frame(8, 0, 6, 0, 5, '/bin/x\0/x\0sh\0'));
    channel.write(bytes);
    await until('it is closed', () => channel.destroyed);
    expect(heard).toEqual([{ what: 'exec', error: 0, pid: 5, path: '/bin/x', said: '/x', program: 'sh' }]);
  });
});
