// The attempts themselves, run by a process inside the boundary and by its twin outside. It is handed to Node as text, so that nothing of nd7 has to be
// seen inside: it imports Node's own modules only. A list of attempts comes on stdin; each answer is a line of JSON on stdout.
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createSocket } from 'node:dgram';
import { connect, createServer, type NetConnectOpts } from 'node:net';
import { dirname, join } from 'node:path';

/** What came of an attempt, in its own words: who is outside judges. */
interface Came {
  name: string;
  /** 0: it worked as far as it could tell; 1: it was refused; 2: it cannot be tried here. */
  code: number;
  /** What was read. */
  said?: string;
  error?: string;
}

const PROBE_MS = 10_000;
const NET_MS = 2_000;
const PAYLOAD = '#!/bin/sh\nexit 0\n';

type Answer = string | undefined;
type Way = (...args: string[]) => Answer | Promise<Answer>;

/** Refuses, or cannot be tried (code 2), in a program of its own. */
class ProbeError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

function put(path: string): Answer {
  writeFileSync(path, PAYLOAD, { flag: 'a' });
  return undefined;
}

function read(path: string): string {
  return readFileSync(path, 'latin1').slice(0, 65_536);
}

/** Sends one line or frame, and waits until it is taken or refused. */
function say(to: NetConnectOpts, line: string | Buffer, first?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect(to);
    socket.setTimeout(NET_MS, () => socket.destroy(new Error('nobody answered')));
    socket.on('error', reject);
    socket.on('connect', () => void socket.write(first ?? line));
    socket.on('data', (bytes: Buffer) => {
      // A proxy answers first, and only what it lets through follows.
      if (first !== undefined && !/^HTTP\/1\.\d 200/.test(bytes.toString('latin1')))
        return void socket.destroy(new Error(bytes.toString('latin1').split('\r\n', 1)[0]));
      if (first === undefined) return void socket.destroy();
      first = undefined;
      socket.write(line);
    });
    socket.on('close', (failed) => failed || resolve(undefined));
  });
}

const ways: Record<string, Way> = {
  read,
  write: put,
  truncate: (path = '') => void truncateSync(path, 0),
  unlink: (path = '') => void unlinkSync(path),
  rename: (from = '', to = '') => void renameSync(from, to),
  link: (from = '', to = '') => void linkSync(from, to),
  chmod: (path = '') => void chmodSync(path, 0o777),
  utime: (path = '') => void utimesSync(path, 1, 1),
  'write-in-new-folder': (path = '') => {
    mkdirSync(dirname(path), { recursive: true });
    return put(path);
  },
  'write-and-rename': (path = '', to = '') => {
    put(path);
    renameSync(path, to);
    return undefined;
  },
  'write-and-link': (path = '', to = '') => {
    put(path);
    linkSync(path, to);
    return undefined;
  },
  /** The folder goes away under another name, is written in, and comes back. */
  'write-in-moved': (folder = '', name = '') => {
    renameSync(folder, `${folder}-moved`);
    try {
      return put(join(`${folder}-moved`, name));
    } finally {
      renameSync(`${folder}-moved`, folder);
    }
  },
  'read-by-symlink': (path = '', link = '') => {
    symlinkSync(path, link);
    return read(link);
  },
  'read-by-hard-link': (path = '', link = '') => {
    linkSync(path, link);
    return read(link);
  },
  'write-by-symlink': (folder = '', link = '', name = '') => {
    symlinkSync(folder, link);
    return put(join(link, name));
  },
  tcp: (port = '', line = '') => say({ host: '127.0.0.1', port: Number(port) }, line),
  unix: (path = '', line = '') => say({ path }, line),
  /** By the session's proxy; where there is none, as a program does that looks for none. */
  proxy: (port = '', line = '') => {
    const proxy = process.env['HTTPS_PROXY'];
    if (proxy === undefined) return say({ host: '127.0.0.1', port: Number(port) }, line);
    const { hostname, port: at } = new URL(proxy);
    const target = `127.0.0.1:${port}`;
    return say({ host: hostname, port: Number(at) }, line, `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  },
  udp: (port = '', line = '') =>
    new Promise((resolve, reject) => {
      const socket = createSocket('udp4');
      socket.on('error', reject);
      socket.send(line, Number(port), '127.0.0.1', (error) => {
        socket.close();
        if (error) reject(error);
        else resolve(undefined);
      });
    }),
  /** Answers what somebody outside sent to a server made here. */
  listen: (name = '') =>
    new Promise((resolve, reject) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.on('data', (bytes: Buffer) => {
          clearTimeout(timer);
          socket.destroy();
          server.close();
          resolve(bytes.toString('latin1'));
        });
      });
      const timer = setTimeout(() => {
        server.close();
        reject(new Error('nobody outside reached it'));
      }, NET_MS);
      server.on('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const address = server.address();
        tell({ name, listening: typeof address === 'object' ? (address?.port ?? 0) : 0 });
      });
    }),
  /** Something done to a process by its number outside; where that is a number of this process here, it would be done to itself. */
  'to-process': (pid = '', way = '', ...args) => {
    if (existsSync(`/proc/self/task/${pid}`)) throw new ProbeError(2, 'its number is this process’s own inside');
    return ways[way]?.(...args);
  },
  kill: (pid = '') => {
    process.kill(Number(pid), 'SIGKILL');
    return undefined;
  },
  /** Leaves a process behind that goes on writing a file, for a while. */
  stay: (path = '') => {
    const script = 'i=0; while [ $i -lt 40 ] && [ -d "${1%/*}" ]; do echo x >"$1"; sleep 0.1; i=$((i+1)); done';
    spawn('sh', ['-c', script, 'sh', path], { detached: true, stdio: 'ignore' }).unref();
    return undefined;
  },
  /** One question to a session's control socket (docs/protocol/control-socket.md); its answer says nothing that who is outside does not see. */
  control: (path = '', question = '') => {
    const number = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
    const meta = Buffer.from('op=allow\0');
    const payload = Buffer.from(question);
    const frame = [Buffer.from([0x6e, 0x64, 0x37, 1]), number(meta.length), meta, number(payload.length), payload];
    return say({ path }, Buffer.concat(frame));
  },
  /** nd7 itself, in a home of which it is told. */
  nd7: (program = '', home = '', ...args) => {
    const env = { ...process.env, ND7_HOME: home, HOME: home };
    const ran = spawnSync(process.execPath, [program, ...args], { encoding: 'latin1', timeout: PROBE_MS, env });
    if (ran.error !== undefined) throw ran.error;
    if (ran.status !== 0) throw new Error(ran.stderr.trim().split('\n').at(-1) || `ended by ${ran.signal}`);
    return undefined;
  },
  /** When who is outside has said by a file that the time has come. */
  after: async (mark = '', way = '', ...args) => {
    const until = performance.now() + PROBE_MS;
    while (!existsSync(mark) || read(mark) === '') {
      if (performance.now() > until) throw new ProbeError(2, 'nobody outside said that it is time');
      await new Promise((done) => setTimeout(done, 20));
    }
    const said = read(mark);
    if (said !== 'over') throw new ProbeError(2, said);
    return ways[way]?.(...args);
  },
  'run-copy': (program = '', copy = '') => {
    copyFileSync(program, copy);
    chmodSync(copy, 0o755);
    return probe(copy, 'true');
  },
  native: (program = '', ...args) => probe(program, ...args),
};

/** One attempt of native/probes. */
function probe(program: string, ...args: string[]): Answer {
  const ran = spawnSync(program, args, {
    encoding: 'latin1',
    timeout: PROBE_MS,
    env: { NP_TELL: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (ran.error !== undefined) throw ran.error;
  if (ran.status === 0) return ran.stdout;
  throw new ProbeError(ran.status ?? 1, ran.stderr.trim().split('\n').at(-1) || `ended by ${ran.signal}`);
}

function tell(what: object): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

async function attempt({ name, does }: { name: string; does: string[] }): Promise<Came> {
  const [way = '', ...args] = does;
  try {
    const said = await ways[way]?.(...args);
    return { name, code: 0, ...(said === undefined ? {} : { said }) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { name, code: error instanceof ProbeError ? error.code : 1, error: reason.slice(0, 200) };
  }
}

const parent = process.ppid;
for (const one of JSON.parse(readFileSync(0, 'utf8')) as { name: string; does: string[] }[]) {
  // Who judges is gone: nothing is tried for nobody.
  if (process.ppid !== parent) break;
  tell(await attempt(one));
}
