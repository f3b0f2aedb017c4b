// The front alone: what it stands for is a program of this test's, and so is its host.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '..');
/** What the compiler said: built once. */
const built = spawnSync(process.execPath, [join(folder, 'build.mjs'), '--sanitize'], { encoding: 'utf8' });
const builds = ['nd7', 'nd7-sanitized'].filter((name) => existsSync(join(folder, 'build', name)));

it('compiles without a warning, or says what is missing', () => {
  expect([built.status, built.stderr]).toEqual([0, '']);
  expect(builds.length > 0 || built.stdout.includes('was not found') || built.stdout.includes('no C compiler')).toBe(
    true,
  );
});

const each = builds.length > 0 ? describe.each(builds) : describe.skip.each(['nd7']);
each('%s', (name) => {
  let base: string;
  let home: string;
  let front: string;
  let server: Server | undefined;
  beforeEach(() => {
    base = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-front-')));
    home = join(base, 'a home');
    front = join(home, 'bin/nd7');
    for (const one of ['bin', 'run']) mkdirSync(join(home, one), { recursive: true, mode: 0o700 });
    copyFileSync(join(folder, 'build', name), front);
    chmodSync(front, 0o755);
    main('console.log(JSON.stringify(process.argv.slice(2)));');
  });
  afterEach(() => {
    server?.close();
    server = undefined;
    rmSync(base, { recursive: true, force: true });
  });

  /** What the front stands for. Started as a host it ends at once. */
  function main(body: string, node = process.execPath): void {
    const path = join(base, 'main.cjs');
    writeFileSync(path, `if (process.argv[2] === 'host') process.exit(0);\n${body}\n`);
    writeFileSync(join(home, 'run/shim.conf'), `node=${node}\nmain=${path}\n`, { mode: 0o600 });
  }

  async function nd7(args: string[], env: Record<string, string> = {}, program = front) {
    const child = spawn(program, args, { env: { PATH: '/usr/bin:/bin', ND7_HOME: home, ...env }, cwd: base });
    const said = { stdout: '', stderr: '' };
    for (const one of ['stdout', 'stderr'] as const)
      child[one].on('data', (bytes: Buffer) => (said[one] += bytes.toString()));
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    return { code, signal, ...said };
  }

  it('is Node with the same words for every other command, with its end', async () => {
    const words = ['log', '', 'a b', '--json', 'ünï', '--', 'run'];
    expect(await nd7(words)).toEqual({ code: 0, signal: null, stdout: `${JSON.stringify(words)}\n`, stderr: '' });
    expect((await nd7([])).stdout).toBe('[]\n');
    expect((await nd7(['run'])).stdout).toBe('["run"]\n');
    main('process.exit(7)');
    expect(await nd7(['verify'])).toMatchObject({ code: 7 });
    main("process.kill(process.pid, 'SIGTERM'); setTimeout(() => 0, 1e5)");
    expect(await nd7(['verify'])).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('is found through a link, and with the Node on PATH where its own has gone', async () => {
    const link = join(base, 'nd7');
    symlinkSync(front, link);
    expect((await nd7(['x'], {}, link)).stdout).toBe('["x"]\n');
    main('console.log("other Node")', '/no/such/node');
    const bin = join(base, 'path');
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, 'node'));
    expect((await nd7(['x'], { PATH: `/no/such:${bin}` })).stdout).toBe('other Node\n');
    expect(await nd7(['x'], { PATH: '' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no Node') as string,
    });
  });

  it('says what to do where the program that it stands for has gone', async () => {
    rmSync(join(base, 'main.cjs'));
    const { code, stderr } = await nd7(['status']);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/main\.cjs\n {5}Run `nd7 init` once/) as string]);
  });

  it('runs by Node where no host is to be had, and where others can write to the home', async () => {
    expect((await nd7(['run', 'true'])).stdout).toBe('["run","true"]\n');
    chmodSync(join(home, 'run'), 0o777);
    await listen(() => undefined);
    expect((await nd7(['run', 'true'])).stdout).toBe('["run","true"]\n');
  }, 60_000);

  /** A host: `answer` gets the second connection of each front, with what it has asked. */
  async function listen(answer: (control: Socket) => void): Promise<void> {
    let count = 0;
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (count++ % 2 === 1) socket.once('data', () => answer(socket));
    }).listen(join(home, 'run/host'));
    await once(server, 'listening');
  }
  const frame = (...parts: (number | string)[]): Buffer => {
    const body = Buffer.concat(
      parts.map((part) => {
        const bytes = Buffer.alloc(4);
        if (typeof part === 'string') return Buffer.from(part);
        bytes.writeUInt32LE(part >>> 0);
        return bytes;
      }),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32LE(body.length);
    return Buffer.concat([length, body]);
  };
  const [REFUSE, LAUNCH, SAY, FLUSH, SIGNAL, END, PREPARE] = [1, 2, 3, 4, 5, 6, 7];

  it('prints what the host says, in its order, and ends as it says', async () => {
    await listen((control) => {
      control.write(frame(SAY, 'first\n'));
      control.once('data', () => control.write(Buffer.concat([frame(SAY, 'second\n'), frame(END, 0, 9)])));
      control.write(frame(FLUSH));
    });
    expect(await nd7(['run', 'true'])).toEqual({ code: 9, signal: null, stdout: '', stderr: 'first\nsecond\n' });
  });

  it.each([
    [1, 15, null, 'SIGTERM'],
    [1, 11, 128 + 11, null],
    [0, 255, 255, null],
  ])('an end of %i %i', async (by, value, code, signal) => {
    await listen((control) => control.write(frame(END, by, value)));
    expect(await nd7(['run', 'true'])).toMatchObject({ code, signal });
  });

  it('runs by Node what a host refuses', async () => {
    await listen((control) => control.end(frame(REFUSE, 'no\0')));
    expect(await nd7(['run', 'true'])).toMatchObject({ code: 0, stdout: '["run","true"]\n', stderr: '' });
  });

  it.each<[string, Buffer]>([
    ['no frame', Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
    ['a frame of no kind', frame(99)],
    ['a frame too long', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['a frame too short', Buffer.from([3, 0, 0, 0, 1, 1, 1])],
    ['a launch of nothing', frame(LAUNCH)],
    ['a launch of a relative path', frame(LAUNCH, 0, 'sh\0')],
    ['a launch without an end', frame(LAUNCH, 0, '/bin/sh')],
    ['a launch of two paths', frame(LAUNCH, 0, '/bin/sh\0/x\0')],
    ['a seventh attempt', frame(LAUNCH, 6, '/bin/sh\0')],
    ['a signal that is none', frame(SIGNAL, 0xffff_ffff)],
    ['an end by no signal', frame(END, 1, 0)],
    ['an end by a code that is none', frame(END, 0, 256)],
    ['an end in three parts', frame(END, 0, 0, 0)],
    ['a launcher to prepare by a relative path', frame(PREPARE, 0, 'bin/cat\0')],
    ['two launchers to prepare', Buffer.concat([frame(PREPARE, 0, '/bin/cat\0'), frame(PREPARE, 1, '/bin/cat\0')])],
    [
      'a launcher to prepare after a launch',
      Buffer.concat([frame(LAUNCH, 0, '/bin/cat\0'), frame(PREPARE, 1, '/bin/cat\0')]),
    ],
    ['two launches', Buffer.concat([frame(LAUNCH, 0, '/bin/cat\0'), frame(LAUNCH, 1, '/bin/cat\0')])],
    ['a refusal after a launch', Buffer.concat([frame(LAUNCH, 0, '/bin/cat\0'), frame(REFUSE, 'x\0')])],
    ['an end before the launcher’s', Buffer.concat([frame(LAUNCH, 0, '/bin/cat\0'), frame(END, 0, 0)])],
  ])('ends where a host says %s', async (_what, bytes) => {
    await listen((control) => control.write(bytes));
    expect(await nd7(['run', 'true'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('nd7: the session was ended') as string,
    });
  });

  it('starts a launcher before its plan is there, and tells of it when it is launched, also where it has ended by then', async () => {
    const told: Buffer[] = [];
    await listen((control) => {
      control.on('data', (bytes: Buffer) => told.push(bytes));
      control.write(frame(PREPARE, 0, '/bin/false\0'));
      setTimeout(() => control.write(frame(LAUNCH, 0, '/bin/false\0')), 200);
      setTimeout(() => control.end(frame(END, 0, 4)), 400);
    });
    expect(await nd7(['run', 'true'])).toMatchObject({ code: 4, stderr: '' });
    const all = Buffer.concat(told);
    // Launched, with its pid; exited with 1.
    expect([all.readUInt32LE(4), all.readInt32LE(8) > 1, all.subarray(12).toString('hex')]).toEqual([
      2,
      true,
      '080000000300000000010000',
    ]);
  });

  it.each<[string, Buffer, number]>([
    ['an end', frame(END, 0, 4), 4],
    ['a refusal', frame(REFUSE, 'no\0'), 0],
  ])('%s in place of a launch ends the launcher that was prepared', async (_what, last, code) => {
    const pid = join(base, 'pid');
    const launcher = join(base, 'launcher');
    writeFileSync(launcher, `#!/bin/sh\necho $$ > '${pid}'\nexec sleep 60\n`, { mode: 0o755 });
    await listen((control) => {
      control.write(frame(PREPARE, 0, `${launcher}\0`));
      const wait = setInterval(() => {
        if (!existsSync(pid) || readFileSync(pid, 'utf8') === '') return;
        clearInterval(wait);
        control.end(last);
      }, 10);
    });
    expect(await nd7(['run', 'true'])).toMatchObject({ code, stderr: '' });
    expect(existsSync(`/proc/${readFileSync(pid, 'utf8').trim()}`)).toBe(false);
  });

  it('tells how the launcher ended, and what it could not start', async () => {
    const launcher = join(base, 'launcher');
    writeFileSync(launcher, '#!/bin/sh\n[ "$1" = 3 ] && [ "$(pwd)" = / ] && [ -S /proc/self/fd/3 ] && exit 42\n', {
      mode: 0o755,
    });
    const heard: Buffer[] = [];
    const both = async (path: string): Promise<number[]> => {
      heard.length = 0;
      await listen((control) => {
        control.on('data', (bytes: Buffer) => {
          heard.push(bytes);
          if (Buffer.concat(heard).length >= 24) control.end(frame(END, 0, 0));
        });
        control.write(frame(LAUNCH, 0, `${path}\0`));
      });
      await nd7(['run', 'true']);
      server?.close();
      const all = Buffer.concat(heard);
      return [4, 16, 20].map((at) => all.readUInt32LE(at));
    };
    expect(await both(launcher)).toEqual([2, 3, 42 << 8]);
    expect(await both('/no/such/launcher')).toEqual([2, 3, 125 << 8]);
  });

  it('runs by Node where a host goes without a word, after it has tried another', async () => {
    let asked = 0;
    await listen((control) => {
      asked++;
      control.destroy();
    });
    expect(await nd7(['run', 'true'])).toMatchObject({ code: 0, stdout: '["run","true"]\n' });
    expect(asked).toBe(2);
  });
});

const fuzz = join(folder, 'build/fuzz');
(existsSync(fuzz) ? it : it.skip)('reads any bytes without harm (fuzz)', () => {
  const ran = spawnSync(fuzz, [String(Date.now() % 1e6), '60000'], { encoding: 'utf8' });
  expect([ran.status, ran.stderr]).toEqual([0, '']);
});
