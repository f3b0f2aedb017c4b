// The relay with the proxy that decides for it: what only a second process can get wrong. What holds whoever moves the bytes is in tunnel, transparent and flood.
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { availableParallelism, loadavg } from 'node:os';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as tlsConnect } from 'node:tls';
import { MOVERS, rule, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';
import type { LostRelay } from './proxy.js';
import { addressBytes } from './relay.js';

const [, relayed] = MOVERS;
let net: TestNet;
let lost: LostRelay[];
beforeEach(async () => {
  lost = [];
  net = await new TestNet().start({ ...relayed?.[1], lost: (relay) => lost.push(relay) });
});
afterEach(() => net.stop());

const closed = (socket: Socket): Promise<unknown> =>
  new Promise((done) => socket.on('error', () => undefined).on('close', done));

/** Sockets that a process holds. */
function socketsOf(pid: number): number {
  return readdirSync(`/proc/${String(pid)}/fd`).length;
}
const relayPid = (): number =>
  Number(
    readFileSync(`/proc/self/task/${String(process.pid)}/children`, 'latin1')
      .trim()
      .split(' ')
      .at(-1),
  );

const cmdline = (pid: number): string => readFileSync(`/proc/${String(pid)}/cmdline`, 'latin1');

async function rawHost(take: (socket: Socket) => void): Promise<void> {
  await net.host('git.example.com', 22, createServer({ allowHalfOpen: true }, take));
  net.rules.hosts.push(rule('git.example.com', { raw: true }));
}

(relayed === undefined ? describe.skip : describe)('the relay', () => {
  it('holds the sockets of a tunnel, and this process none', async () => {
    let accepted = 0;
    await rawHost((server) => {
      accepted++;
      server.resume().once('end', () => server.end());
    });
    // Started as a whole when it has served one.
    const first = await net.tunnel('git.example.com:22');
    const [here, there] = [socketsOf(process.pid), socketsOf(relayPid())];
    const tunnels = await Promise.all(Array.from({ length: 10 }, () => net.tunnel('git.example.com:22')));
    expect(socketsOf(relayPid()) - there).toBe(20);
    // The program's ends and the server's are this test's.
    while (accepted < 11) await sleep(5);
    expect(socketsOf(process.pid) - here).toBeLessThanOrEqual(20);
    for (const { socket } of [first, ...tunnels]) socket.destroy();
  });

  it('is out of reach of what a terminal sends', () => {
    const stat = readFileSync(`/proc/${String(relayPid())}/stat`, 'latin1');
    // After the name: state, parent, process group, session, terminal.
    const [, , group, session, terminal] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    expect([group, session, terminal]).toEqual([String(relayPid()), String(relayPid()), '0']);
  });

  it.each([
    ['to a program', false],
    ['to a server', true],
  ])('moves all bytes %s, in order, whoever is slow', async (_what, isOut) => {
    const body = Buffer.alloc(12 << 20);
    for (let i = 0; i < body.length; i += 4) body.writeUInt32LE(i, i);
    let heard: Promise<Buffer> | undefined;
    await rawHost((server) => {
      if (isOut) {
        server.pause();
        heard = sleep(200).then(() => buffer(server));
        void heard.then(() => server.end());
      } else server.end(body);
    });
    const { socket } = await net.tunnel('git.example.com:22');
    if (isOut) socket.end(body);
    else {
      await sleep(200);
      heard = buffer(socket);
    }
    while (heard === undefined) await sleep(5);
    const got = createHash('sha256')
      .update(await heard)
      .digest('hex');
    expect(got).toBe(createHash('sha256').update(body).digest('hex'));
    socket.destroy();
  });

  it('passes a half-closed side on as such, and what is said after it', async () => {
    await rawHost((server) => {
      let said = '';
      server.on('data', (bytes) => (said += String(bytes))).once('end', () => server.end(`heard ${said}`));
    });
    const { socket } = await net.tunnel('git.example.com:22');
    socket.end('to its end');
    expect(String(await buffer(socket))).toBe('heard to its end');
  });

  it('waits for a hello that comes in pieces, and shows nothing of it before', async () => {
    const captured = createServer();
    const at = await net.listen(captured);
    const secure = tlsConnect({ port: at, host: '127.0.0.1', servername: 'api.example.com' }).on(
      'error',
      () => undefined,
    );
    const [taken] = (await once(captured, 'connection')) as [Socket];
    const [hello] = (await once(taken, 'data')) as [Buffer];
    secure.destroy();
    const heard: Buffer[] = [];
    await net.host(
      'api.example.com',
      443,
      createServer((server) => server.on('data', (bytes: Buffer) => heard.push(bytes))),
    );
    net.rules.hosts.push(rule('api.example.com'));
    const { socket } = await net.tunnel('api.example.com:443');
    socket.setNoDelay(true);
    for (const end of [1, 4, 7, 200]) {
      socket.write(hello.subarray([0, 1, 4, 7][[1, 4, 7, 200].indexOf(end)], end));
      await sleep(30);
    }
    expect(heard).toEqual([]);
    socket.write(Buffer.concat([hello.subarray(200), Buffer.from('and more')]));
    while (Buffer.concat(heard).length < hello.length + 8) await sleep(5);
    expect(Buffer.concat(heard)).toEqual(Buffer.concat([hello, Buffer.from('and more')]));
    socket.destroy();
  });

  it('gives the hello that a program sends together with its request', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    const { answer, socket } = await net.ask('CONNECT api.example.com:443 HTTP/1.1\r\n\r\n\x16\x03\x01');
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    // Three bytes are no hello: time runs out, which is recorded.
    await closed(socket);
    expect(net.decisions.at(-1)).toMatchObject({ verdict: 'deny', reason: 'no-hello' });
  });

  it('cuts tunnels whose host is not let through any more', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    const open = await net.tunnel('api.example.com:443');
    const secure = await tlsThrough(open.socket, 'api.example.com');
    const over = closed(secure);
    net.rules = { ...net.rules, hosts: [] };
    expect(net.egress.recheck()).toBe(1);
    await over;
  });

  it('interrupts nobody while many tunnels are at work, and is as quick as any other for one, or on a crowded machine', async () => {
    await rawHost((server) => server.pipe(server).on('error', () => undefined));
    /** Field 41 of /proc/PID/stat: 0 is SCHED_OTHER, 3 SCHED_BATCH. */
    const policyOf = (pid: number): number => {
      const stat = readFileSync(`/proc/${String(pid)}/stat`, 'latin1');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
    };
    const tunnels = await Promise.all(Array.from({ length: 8 }, () => net.tunnel('git.example.com:22')));
    const isCrowded = (): boolean => (loadavg()[0] as number) > 2 * availableParallelism();
    const workUntil = async (sockets: Socket[], policy: number): Promise<void> => {
      const began = performance.now();
      do await Promise.all(sockets.map((socket) => (socket.write('ping'), once(socket, 'data'))));
      while (performance.now() - began < 50 || policyOf(relayPid()) !== (isCrowded() ? 0 : policy));
    };
    const sockets = tunnels.map(({ socket }) => socket);
    await workUntil(sockets, 3);
    await workUntil(sockets.slice(0, 1), 0);
    for (const socket of sockets) socket.destroy();
  });

  it('dials nothing whose grant ended while the decision was written', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    net.record = () => {
      net.rules = { ...net.rules, hosts: [] };
      return sleep(20);
    };
    const { answer } = await net.tunnel('api.example.com:443');
    expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*may not be reached any more/);
    expect(net.dialled).toEqual([]);
  });

  it('dials the next address when one fails, and tells who asked where all do', async () => {
    await rawHost((server) => server.end('there'));
    net.names.set('git.example.com', ['93.184.216.99', '2606:2800:220:1::1', '93.184.216.34']);
    const { socket } = await net.tunnel('git.example.com:22');
    expect(String(await buffer(socket))).toBe('there');
    net.names.set('git.example.com', ['93.184.216.99']);
    expect((await net.tunnel('git.example.com:22')).answer).toMatch(/^HTTP\/1\.1 502 [^]*nd7-reason: refused/);
  });

  it('ends its tunnels when it is killed, which is told, and the next connection has another', async () => {
    await rawHost((server) => server.end('there'));
    net.rules.hosts.push(rule('slow.example.com', { raw: true }));
    await net.host(
      'slow.example.com',
      22,
      createServer((server) => server.on('error', () => undefined).resume()),
      '93.184.216.35',
    );
    const [{ socket: one }, { socket: other }] = [
      await net.tunnel('slow.example.com:22'),
      await net.tunnel('slow.example.com:22'),
    ];
    const first = relayPid();
    const over = [closed(one), closed(other)];
    process.kill(first, 'SIGKILL');
    await Promise.all(over);
    while (lost.length === 0) await sleep(5);
    expect(lost).toEqual([{ code: null, signal: 'SIGKILL', tunnels: 2, goesOn: true }]);
    // The first is served by this process, which starts the relay.
    for (let i = 0; i < 3; i++) {
      const { socket } = await net.tunnel('git.example.com:22');
      expect(String(await buffer(socket))).toBe('there');
      await sleep(100);
    }
    expect(relayPid()).not.toBe(first);
    expect(readFileSync(`/proc/${String(relayPid())}/cmdline`, 'latin1')).toMatch(/nd7-relay/);
  });

  it('is given to a session five times; then nothing gets out', async () => {
    await rawHost((server) => server.end('there'));
    for (let i = 1; i <= 5; i++) {
      const relay = relayPid();
      process.kill(relay, 'SIGKILL');
      while (lost.length < i) await sleep(5);
      if (i === 5) break;
      expect((await net.tunnel('git.example.com:22')).answer).toMatch(/ 200 /);
      while (relayPid() === relay || !/nd7-relay/.test(cmdline(relayPid()))) await sleep(5);
      await sleep(50);
    }
    expect(lost.map(({ goesOn }) => goesOn)).toEqual([true, true, true, true, false]);
    const refused = once(net.client(), 'connect').catch((error: NodeJS.ErrnoException) => error.code);
    expect(await refused).toBe('ECONNREFUSED');
  });

  it('ends with its session also where it is stopped', async () => {
    const relay = relayPid();
    process.kill(relay, 'SIGSTOP');
    net.egress.close();
    while (existsSync(`/proc/${String(relay)}`)) await sleep(5);
    expect(lost).toEqual([]);
  });

  it('ends with who started it and was killed, also where it is stopped', async () => {
    const program = relayed?.[1].relay ?? '';
    const script = `
      const { spawn } = require('node:child_process');
      const server = require('node:net').createServer().listen(0, '127.0.0.1', () => {
        const child = spawn(process.argv[1], ['1000', '8', 'f'], { stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'ipc'], env: {}, detached: true });
        child.send({ listener: 0 }, server, () => console.log(child.pid));
      });`;
    const starter = spawn(process.execPath, ['-e', script, program], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [said] = (await once(starter.stdout, 'data')) as [Buffer];
      const relay = Number(String(said));
      // The kernel has been asked by then.
      while (!/^NoNewPrivs:\t1$/m.test(readFileSync(`/proc/${String(relay)}/status`, 'latin1'))) await sleep(5);
      process.kill(relay, 'SIGSTOP');
      while (!/^State:\tT/m.test(readFileSync(`/proc/${String(relay)}/status`, 'latin1'))) await sleep(5);
      starter.kill('SIGKILL');
      for (const end = Date.now() + 5000; existsSync(`/proc/${String(relay)}`);) {
        expect(Date.now()).toBeLessThan(end);
        await sleep(5);
      }
    } finally {
      starter.kill('SIGKILL');
    }
  });
});

it('an address in 16 bytes is the one that was meant', () => {
  for (const [address, hex] of [
    ['93.184.216.34', '00000000000000000000ffff5db8d822'],
    ['2606:2800:220:1::1', '26062800022000010000000000000001'],
    ['::1', '00000000000000000000000000000001'],
    ['fe80::', 'fe800000000000000000000000000000'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
  ] as const)
    expect(addressBytes(address).toString('hex')).toBe(hex);
});
