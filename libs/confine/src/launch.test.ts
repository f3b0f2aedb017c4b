// How a session begins, what goes between it and who started it, and how it ends; with the real launcher on the real kernel.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import { Server } from 'node:net';
import { join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { encodePlan } from './plan.js';
import { buildLaunchers, isAlive, Machine, until, USERS } from './session.fixture.js';

beforeAll(buildLaunchers, 120_000);

describe.each(USERS)('a session of %s', (_who, user) => {
  let machine: Machine;
  beforeEach(() => {
    machine = new Machine(user);
  });
  afterEach(() => machine.close());

  it('starts only after every row of the self-test held', async () => {
    const { code, proofs, stderr } = await machine.run('true');
    expect([code, stderr]).toEqual([0, '']);
    const verdicts = Object.fromEntries(proofs.map(({ name, verdict }) => [name, verdict]));
    // Without a terminal nothing can be shown about it.
    expect(verdicts).toEqual({
      ...Object.fromEntries(
        [
          'capabilities',
          'no-new-privileges',
          'filter',
          'namespaces',
          'read-hidden',
          'write-outside',
          'mode-outside',
        ].map((name) => [name, 'held']),
      ),
      ...Object.fromEntries(
        [
          ...['tcp', 'udp', 'abstract-socket', 'signal', 'inspect', 'new-namespace', 'io-uring', 'descriptors'],
          'late-name',
        ].map((name) => [name, 'held']),
      ),
      'terminal-input': 'not-shown',
    });
  });

  it('does not start where the self-test finds a hole', async () => {
    const allow = Uint8Array.from([6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
    const { code, failure } = await machine.run('echo ran > ran', { filter: allow });
    expect([code, failure?.step]).toEqual([125, 'self-test']);
    expect(existsSync(join(machine.project, 'ran'))).toBe(false);
  });

  it('runs nothing before who started it has looked at what was proved', async () => {
    const ran = join(machine.project, 'ran');
    const seen: unknown[] = [];
    const session = machine.start(
      ['/bin/sh', '-c', 'echo x > ran'],
      {},
      {
        admit: async ({ landlock, proofs }) => {
          // The program waits in its own process, which would have been done long ago.
          await new Promise((done) => setTimeout(done, 300));
          seen.push(landlock > 0, proofs.length > 0, existsSync(ran));
        },
      },
    );
    expect(await session.ended).toMatchObject({ code: 0 });
    expect([...seen, existsSync(ran)]).toEqual([true, true, false, true]);
    session.prepared.clean();
  });

  it('runs nothing where who started it says no, or has gone', async () => {
    const refused = machine.start(
      ['/bin/sh', '-c', 'echo x > ran'],
      {},
      {
        admit: () => Promise.reject(new Error('not recorded')),
      },
    );
    await expect(refused.started).rejects.toThrow('not recorded');
    expect(await refused.ended).toMatchObject({ code: 125 });
    refused.prepared.clean();
    const { plan, clean } = machine.prepare(['/bin/sh', '-c', 'echo x > ran']);
    const child = spawn(machine.launcher, ['3'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      env: {},
      ...user,
    });
    const pipe = child.stdio[3] as Duplex;
    pipe.write(encodePlan(plan), () => pipe.destroy());
    expect(await once(child, 'close')).toEqual([125, null]);
    expect(existsSync(join(machine.project, 'ran'))).toBe(false);
    clean();
  });

  it('is heard by its front on sockets of its own, and at addresses that are its own', async () => {
    const script = `
      const net = require('net');
      const ask = (port) => at("127.0.0.1", port);
      const at = (host, port) => new Promise((done) => net.connect(port, host).on('data', (d) => done(String(d))).on('error', (e) => done(e.code)));
      const say = () => new Promise((done) => { const s = require('dgram').createSocket('udp4'); s.on('message', (m) => { s.close(); done(String(m)); }).send('x', 53, '127.0.0.1'); });
      const seen = Object.values(require('os').networkInterfaces()).flat().map((i) => i.address).filter((a) => a.startsWith('198.'));
      Promise.all([ask(3128), ask(3129), ask(3130), at('198.19.7.9', 80), at('198.18.0.3', 5432), at('198.18.0.4', 5432), at('192.0.2.1', 80), ask(80), say()])
        .then((all) => console.log(all.concat(seen).join(' ')));`;
    const session = machine.start([process.execPath, '-e', script.replaceAll(/\s+/g, ' ')], {
      listeners: [
        { kind: 'stream', address: '127.0.0.1', port: 3128 },
        { kind: 'stream', address: '127.0.0.1', port: 3129 },
        { kind: 'stream', address: '0.0.0.0', port: 80 },
        { kind: 'stream', address: '127.0.0.1', port: 80 },
        { kind: 'stream', address: '198.18.0.3', port: 5432 },
        { kind: 'datagrams', address: '127.0.0.1', port: 53 },
      ],
      routes: [{ address: '198.18.0.0', prefix: 15 }],
    });
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    const listeners = await session.listeners;
    listeners.forEach((opened, i) => {
      if (opened instanceof Server) opened.on('connection', (socket) => socket.end(`${i}-${socket.localAddress}`));
      else opened.on('message', (_, { port, address }) => opened.send(`${i}-datagram`, port, address));
    });
    expect(await session.ended).toMatchObject({ code: 0 });
    for (const server of listeners) server.close();
    session.prepared.clean();
    expect(said.trim().split(' ')).toEqual([
      ...['0-127.0.0.1', '1-127.0.0.1', 'ECONNREFUSED', '2-198.19.7.9', '4-198.18.0.3', 'ECONNREFUSED'],
      ...['ENETUNREACH', '3-127.0.0.1', '5-datagram'],
    ]);
  });

  it('connects to servers inside as its front asks, and tells where nobody listens', async () => {
    const script =
      "require('net').createServer((s) => s.end('inside')).listen(4000, '127.0.0.1', () => console.log('listening'))";
    const session = machine.start([process.execPath, '-e', script], { connects: true });
    await once(session.process.stdout as Readable, 'data');
    const ask = async (port: number): Promise<string> => text(await session.connect(port));
    expect(await Promise.all([1, 2, 3, 4].map(() => ask(4000)))).toEqual(Array<string>(4).fill('inside'));
    await expect(ask(4001)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    session.signal('SIGKILL');
    await session.ended;
    await expect(ask(4000)).rejects.toMatchObject({ code: 'ECONNRESET' });
    session.prepared.clean();
  });

  it('passes exit codes, signals and what cannot be run on', async () => {
    expect(await machine.run('exit 7')).toMatchObject({ code: 7, signal: null });
    expect(await machine.run('kill -TERM $$')).toMatchObject({ code: null, signal: 'SIGTERM' });
    expect(await machine.run('kill -KILL $$')).toMatchObject({ code: null, signal: 'SIGKILL' });
    const absent = machine.start(['/no/such/program']);
    expect(await absent.ended).toMatchObject({ code: 127, failure: { step: 'exec', error: 2 } });
    const folder = machine.start([machine.project]);
    expect(await folder.ended).toMatchObject({ code: 126, failure: { step: 'exec', error: 13 } });
    const session = machine.start([
      '/bin/sh',
      '-c',
      'trap "echo got; exit 3" TERM; echo ready; while :; do sleep 0.05; done',
    ]);
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await until('the program is ready', () => said.includes('ready'));
    session.signal('SIGTERM');
    expect([await session.ended, said]).toMatchObject([{ code: 3 }, 'ready\ngot\n']);
  });

  it('ends whole when its launcher is killed or its front goes, and with its first program', async () => {
    // A child that left the process group and was orphaned is not forgotten.
    const script = 'setsid sleep 1000 & sleep 1000 & echo up; while [ ! -e go ]; do sleep 0.02; done';
    for (const end of ['kill', 'close', 'exit'] as const) {
      const session = machine.start(['/bin/sh', '-c', `(${script.split(' & ')[0]} &); ${script}`]);
      let said = '';
      session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
      await until('the session is up', () => said.includes('up'));
      const inside = descendants(session.process.pid as number);
      // init, the shell and the three that sleep.
      expect(inside.length).toBeGreaterThanOrEqual(5);
      if (end === 'kill') session.process.kill('SIGKILL');
      else if (end === 'close') session.process.stdio[3]?.destroy();
      else writeFileSync(join(machine.project, 'go'), '');
      await session.ended;
      await until('nothing of it lives', () => !inside.some(isAlive));
      session.prepared.clean();
    }
  });

  it('leaves nothing behind in the tree, even when it is killed', async () => {
    execFileSync('git', ['init', '-q', machine.project]);
    machine.file('.ssh/id');
    machine.hide('.ssh');
    machine.hide('.never-there');
    machine.protect('.claude');
    machine.mask('**/.env*');
    mkdirSync(join(machine.home, '.nd7'), { mode: 0o700 });
    const before = machine.tree();
    for (let round = 0; round < 5; round++) {
      const session = machine.start(['/bin/sleep', '1000']);
      // At some moment between the first mount and the program's start.
      await new Promise((done) => setTimeout(done, round * 4));
      session.process.kill('SIGKILL');
      await session.ended;
      session.prepared.clean();
    }
    await machine.run('true');
    expect(machine.tree()).toEqual(before);
  });

  it('does not start with a folder for a standard stream: from it every hidden path could be named', async () => {
    machine.file('.ssh/id', 'SECRET');
    machine.hide('.ssh');
    const folder = openSync(machine.project, 'r');
    const session = machine.start(['cat', '/dev/fd/0/../.ssh/id'], {}, { stdio: [folder, 'pipe', 'pipe'] });
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    expect(await session.ended).toMatchObject({ code: 125, failure: { step: 'streams' } });
    closeSync(folder);
    session.prepared.clean();
    expect(said).toBe('');
  });

  it('inherits no descriptor but the three', async () => {
    const secret = machine.file('held', 'SECRET');
    // Node opens with close-on-exec; a shell does not.
    // A supervisor has a channel of its own, which a shell does not make.
    machine.isObserved = false;
    const session = machine.prepare(['/bin/sh', '-c', 'ls /proc/self/fd | wc -l; cat <&9']);
    const file = join(machine.base, 'plan');
    writeFileSync(file, encodePlan(session.plan));
    const script = `exec 9< ${secret} 8< ${machine.home} 3< ${file}; exec ${machine.launcher} 3`;
    const ran = spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8', ...user });
    // stdin, stdout, stderr and the folder that ls reads.
    expect([ran.stdout.trim(), ran.stderr]).toEqual(['4', expect.stringMatching(/9.*Bad file descriptor/)]);
    session.clean();
  });

  it('keeps no descriptor in its first process that it was started with', async () => {
    // Node hands 6 and 7 to the launcher as a careless shell would.
    const held = openSync(machine.file('held'), 'r');
    const session = machine.prepare(['/bin/sleep', '1000']);
    const child = spawn(machine.launcher, ['3'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ignore', 'pipe', held, held],
      env: {},
      ...user,
    });
    closeSync(held);
    (child.stdio[3] as Duplex).write(Buffer.concat([encodePlan(session.plan), Buffer.from('g')]));
    await until('the program runs', () =>
      descendants(child.pid as number).some((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'),
    );
    const targets = [child.pid as number, ...descendants(child.pid as number)].flatMap((pid) =>
      readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)),
    );
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(targets.filter((target) => target.includes('held'))).toEqual([]);
    session.clean();
  });
});

it('works in the sanitized build', async () => {
  const machine = new Machine(undefined, 'nd7-launch-sanitized');
  try {
    machine.file('.ssh/id');
    machine.hide('.ssh');
    const { code, stdout, stderr } = await machine.run('ls -A ..; exit 4');
    expect([code, stdout, stderr]).toEqual([4, '.nd7\n.ssh\nproject\n', '']);
  } finally {
    machine.close();
  }
});

/** Host pids of everything below a process. */
function descendants(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const isBelow = (at: number | undefined): boolean =>
    at !== undefined && at !== 0 && (at === pid || isBelow(parents.get(at)));
  return [...parents.keys()].filter((at) => at !== pid && isBelow(at));
}
