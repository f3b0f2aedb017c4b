import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import {
  isAlive,
  KernelError,
  makeFolders,
  parseStat,
  introducedTo,
  peerOf,
  peerOfSocket,
  processFacts,
  releaseFreedMemory,
  socketAddress,
  tryLock,
  unlock,
} from './index.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-kernel-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('flock', () => {
  it('is held by one open file at a time, even within one process', () => {
    const path = join(folder, 'lock');
    const [a, b] = [openSync(path, 'w'), openSync(path, 'r')];
    expect(tryLock(a)).toBe(true);
    expect(tryLock(a)).toBe(true); // taking it again is no error
    expect(tryLock(b)).toBe(false);
    unlock(a);
    expect(tryLock(b)).toBe(true);
    closeSync(b);
    expect(tryLock(a)).toBe(true); // closing gave it back
    closeSync(a);
  });

  it('says which call failed on a descriptor that is none', () => {
    expect(() => tryLock(987_654)).toThrow(KernelError);
    try {
      tryLock(987_654);
    } catch (error) {
      expect((error as KernelError).code).toBe('lock-failed');
      expect((error as KernelError).errno).toBe('EBADF');
    }
  });

  it('goes with the process that held it', async () => {
    const path = join(folder, 'lock');
    writeFileSync(path, '');
    const index = join(import.meta.dirname, '..', 'dist', 'index.js');
    const child = spawn(
      process.execPath,
      [
        '-e',
        `import(${JSON.stringify(`file://${index}`)}).then((k) => { const fd = require('fs').openSync(${JSON.stringify(path)}, 'r'); process.stdout.write(String(k.tryLock(fd))); setInterval(() => {}, 1000); })`,
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const said = await new Promise<string>((resolve) =>
      child.stdout.once('data', (d: Buffer) => resolve(d.toString())),
    );
    expect(said).toBe('true');
    const fd = openSync(path, 'r');
    expect(tryLock(fd)).toBe(false);
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    expect(tryLock(fd)).toBe(true);
    closeSync(fd);
  }, 60_000);
});

describe('peers', () => {
  let server: Server | undefined;
  afterEach(() => new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve())));

  function pair(where: string | { port: number; host: string }): Promise<{ accepted: Socket; client: Socket }> {
    return new Promise((resolve, reject) => {
      server = createServer((accepted) => resolve({ accepted, client }));
      let client: Socket;
      server.once('error', reject);
      server.listen(where, () => {
        const at = server?.address();
        client = typeof at === 'string' ? connect(at) : connect(at?.port ?? 0, '127.0.0.1');
      });
    });
  }

  it('are named by the kernel on a Unix socket', async () => {
    const { accepted, client } = await pair(join(folder, 's'));
    const peer = peerOfSocket(accepted);
    expect(peer).toEqual({ pid: process.pid, uid: process.getuid?.(), gid: process.getgid?.() });
    client.destroy();
    accepted.destroy();
    expect(() => peerOfSocket(accepted)).toThrow(KernelError);
  });

  // Node gives no client a name: Python does, as the supervisor of a session.
  it('say for whom they have connected, where their socket has the name for it', async () => {
    const at = join(folder, 's');
    const accepted = new Promise<Socket>((resolve) => (server = createServer(resolve)));
    await new Promise<void>((done) => server?.listen(at, done));
    const names = ['nd7-caller-0000004711-00000000000000ff', 'nd7-caller-0000004711-00000000000000fg', ''];
    const said = [];
    for (const name of names) {
      const next = new Promise<Socket>((resolve) => server?.once('connection', resolve));
      const script = `import socket,sys;s=socket.socket(socket.AF_UNIX);n=sys.argv[2];n and s.bind('\\0'+n);s.connect(sys.argv[1]);s.recv(1)`;
      const child = spawn('python3', ['-c', script, at, name], { stdio: 'ignore' });
      const socket = await next;
      said.push(introducedTo(socket));
      socket.destroy();
      await new Promise((done) => child.once('close', done));
    }
    (await accepted).destroy();
    expect(said).toEqual(
      process.platform === 'linux' ? [4711, undefined, undefined] : [undefined, undefined, undefined],
    );
  });

  it('are refused on anything else', async () => {
    const { accepted, client } = await pair({ port: 0, host: '127.0.0.1' });
    expect(() => peerOfSocket(accepted)).toThrow(KernelError);
    client.destroy();
    accepted.destroy();
    const fd = openSync(join(folder, 'file'), 'w');
    expect(() => peerOf(fd)).toThrow(/ENOTSOCK/);
    closeSync(fd);
  });

  it('talk through a folder whose path is longer than a socket address', async () => {
    const deep = join(folder, 'd'.repeat(90), 'ü'.repeat(60));
    mkdirSync(deep, { recursive: true });
    const [listening, calling] = [socketAddress(deep, 'hook'), socketAddress(deep, 'hook')];
    expect(Buffer.byteLength(join(deep, 'hook'))).toBeGreaterThan(107);
    server = createServer((s) => s.end('here'));
    await new Promise<void>((resolve) => server?.listen(listening.path, resolve));
    expect(existsSync(join(deep, 'hook'))).toBe(true);
    const said = await new Promise<string>((resolve, reject) =>
      connect(calling.path)
        .on('data', (d) => resolve(d.toString()))
        .on('error', reject),
    );
    expect(said).toBe('here');
    listening.close();
    listening.close();
    calling.close();
  });

  it('need no descriptor where the path fits', () => {
    expect(socketAddress('/run/x', 'hook').path).toBe('/run/x/hook');
  });
});

it('gives freed memory back where the C library can', () => {
  expect(typeof releaseFreedMemory()).toBe('boolean');
});

describe('processes', () => {
  it('are read past a name that imitates the line', () => {
    const tail = Array.from({ length: 30 }, (_, i) => String(100 + i)).join(' ');
    expect(parseStat(`42 (a) R 7 (b) S) S 9 ${tail}\n`)).toEqual({
      pid: 42,
      parent: 9,
      start: '117',
      state: 'S',
      childFaults: 106 + 108,
    });
    for (const bad of ['', '1', '1 (a', '1 (a) S', `x (a) S 9 ${tail}`, `1 )a( S 9 ${tail}`])
      expect(parseStat(bad)).toBeUndefined();
  });

  (process.platform === 'linux' ? it : it.skip)('tell that a child has ended, and nothing while none does', () => {
    const faults = () => processFacts(process.pid)?.childFaults ?? NaN;
    const before = faults();
    expect(faults()).toBe(before);
    spawnSync('true');
    expect(faults()).toBeGreaterThan(before);
  });

  it('have a parent and a start that says whether it is still the same one', () => {
    const me = processFacts(process.pid);
    expect(me?.parent).toBe(process.ppid);
    expect(isAlive(process.pid, me?.start)).toBe(true);
    expect(isAlive(process.pid, `${me?.start}0`)).toBe(false);
    expect(processFacts(0)).toBeUndefined();
    expect(processFacts(-1)).toBeUndefined();
    expect(processFacts(1.5)).toBeUndefined();
  });

  it('are not alive once they have ended, nor while nobody has asked for their end', async () => {
    const done = spawnSync('true');
    expect(isAlive(done.pid)).toBe(false);
    // The child ends when the pipe does, which is after the shell has become a program that never waits for it: a zombie.
    const sh = spawn('sh', ['-c', 'cat <&3 >/dev/null & echo $!; exec sleep 60 3<&-'], {
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    });
    const pid = Number(
      await new Promise<string>((resolve) => sh.stdout?.once('data', (d: Buffer) => resolve(d.toString()))),
    );
    const name = (): string => readFileSync(`/proc/${String(sh.pid)}/comm`, 'utf8').trim();
    while (name() !== 'sleep') await new Promise((r) => setTimeout(r, 10));
    expect(isAlive(pid)).toBe(true);
    (sh.stdio[3] as Writable).end();
    for (let i = 0; i < 3000 && processFacts(pid)?.state !== 'Z'; i++) await new Promise((r) => setTimeout(r, 10));
    expect(processFacts(pid)?.state).toBe('Z');
    expect(isAlive(pid)).toBe(false);
    sh.kill('SIGKILL');
  }, 60_000);
});

describe('folders', () => {
  it('are made with those above them, and left as they are where they are there', () => {
    const path = join(folder, 'a', 'b', 'c');
    for (const mode of [0o700, 0o755]) makeFolders(path, mode);
    for (const one of ['a', 'a/b', 'a/b/c']) expect(statSync(join(folder, one)).mode & 0o777).toBe(0o700);
    symlinkSync(path, join(folder, 'link'));
    makeFolders(join(folder, 'link'));
    makeFolders(join(folder, 'link', 'd'));
    expect(readdirSync(path)).toEqual(['d']);
  });

  it('that cannot be made are an error, also where the system says that what is there is missing', () => {
    const code = (path: string) => {
      try {
        makeFolders(path);
        return 'made';
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    };
    writeFileSync(join(folder, 'file'), '');
    symlinkSync('nowhere', join(folder, 'dangling'));
    expect([code(join(folder, 'file')), code(join(folder, 'dangling'))]).toEqual(['EEXIST', 'EEXIST']);
    expect(code(join(folder, 'file', 'x', 'y'))).toBe('ENOTDIR');
    if (process.platform === 'linux') expect([code('/proc/nd7'), code('/proc/nd7/x')]).toEqual(['ENOENT', 'ENOENT']);
  });
});
