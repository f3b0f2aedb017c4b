import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const folder = join(import.meta.dirname, '..');
/** What the compiler said: built once per test file. */
export const built = spawnSync(process.execPath, [join(folder, 'build.mjs'), '--sanitize'], { encoding: 'utf8' });
export const release = join(folder, 'build/nd7-shim');
export const compiled = existsSync(release);
/** Name and path of the builds that there are. */
export const builds = [
  ['release', release],
  ['sanitized', join(folder, 'build/nd7-shim-sanitized')],
].filter(([, path]) => existsSync(path as string)) as [string, string][];

/** A payload of a call that is about to run. */
export const tool = (more = {}): string =>
  JSON.stringify({
    session_id: 's-1',
    hook_event_name: 'PreToolUse',
    tool_name: 'Bash',
    tool_input: { command: 'echo "}"' },
    ...more,
  });

/** One request as the fake recorder read it. */
export interface Received {
  meta: Record<string, string>;
  payload: Buffer;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export function answer(code: number, stdout = '', stderr = ''): Buffer {
  const [out, err] = [Buffer.from(stdout), Buffer.from(stderr)];
  const numbers = [code, out.length, err.length].map((n) => {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(n);
    return b;
  });
  return Buffer.concat([
    Buffer.from('nd7\x01'),
    numbers[0] as Buffer,
    numbers[1] as Buffer,
    out,
    numbers[2] as Buffer,
    err,
  ]);
}

/** The request in these bytes, undefined while it is not whole. */
export function parseRequest(bytes: Buffer): Received | undefined {
  if (bytes.length < 8) return undefined;
  if (bytes.toString('latin1', 0, 4) !== 'nd7\x01') throw new Error('not the protocol');
  const meta = bytes.readUInt32LE(4);
  if (bytes.length < 12 + meta) return undefined;
  const length = bytes.readUInt32LE(8 + meta);
  if (bytes.length < 12 + meta + length) return undefined;
  if (bytes.length > 12 + meta + length) throw new Error('bytes after the request');
  const strings = bytes.toString('utf8', 8, 8 + meta).split('\0');
  if (strings.pop() !== '') throw new Error('the meta block does not end with NUL');
  return {
    meta: Object.fromEntries(strings.map((s) => [s.slice(0, s.indexOf('=')), s.slice(s.indexOf('=') + 1)])),
    payload: bytes.subarray(12 + meta),
  };
}

/** A home, a fake recorder in it, and a fake `main` that the shim may start. */
export class Rig {
  readonly home: string;
  readonly #base: string;
  readonly received: Received[] = [];
  #server: Server | undefined;
  #children: ChildProcess[] = [];
  #sockets = new Set<Socket>();

  constructor(
    readonly shim: string,
    below = '',
  ) {
    this.#base = mkdtempSync(join(tmpdir(), 'nd7-shim-'));
    this.home = join(this.#base, below);
    mkdirSync(join(this.home, 'run'), { recursive: true, mode: 0o700 });
    chmodSync(this.home, 0o700);
  }

  path(name: string): string {
    return join(this.home, name);
  }

  read(name: string): string {
    try {
      return readFileSync(this.path(name), 'utf8');
    } catch {
      return '';
    }
  }

  conf(lines: Record<string, string | number>): void {
    const text = Object.entries(lines)
      .map(([k, v]) => `${k}=${v}\n`)
      .join('');
    writeFileSync(this.path('run/shim.conf'), `# written by a test\n${text}`, { mode: 0o600 });
  }

  /** Writes a main file that runs `body` with `role` (recorder or hook), `home`, `fs` and `net` at hand; the other lines of shim.conf are `more`. */
  main(body: string, more: Record<string, string | number> = {}): void {
    const main = this.path('main.cjs');
    writeFileSync(
      main,
      `const fs = require('fs'), net = require('net'), home = process.env.ND7_HOME, role = process.argv[2];\n${body}\n`,
    );
    this.conf({ node: process.execPath, main, ...more });
  }

  /** Listens; `reply` gets each whole request and says what to send, or takes the socket itself. */
  async listen(
    reply: (request: Received, socket: Socket) => Buffer | undefined,
    path = this.path('run/hook'),
  ): Promise<void> {
    const server = (this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      const pieces: Buffer[] = [];
      let have = 0;
      let need = 8;
      let done = false;
      socket.on('error', () => undefined);
      socket.on('data', (piece) => {
        if (done) return;
        pieces.push(piece);
        have += piece.length;
        if (have < need) return;
        const bytes = Buffer.concat(pieces.splice(0));
        pieces.push(bytes);
        const request = parseRequest(bytes);
        if (!request) {
          // Joining every piece of 64 MiB anew would be quadratic.
          const meta = bytes.readUInt32LE(4);
          need = have < 12 + meta ? 12 + meta : 12 + meta + bytes.readUInt32LE(8 + meta);
          return;
        }
        done = true;
        this.received.push(request);
        const said = reply(request, socket);
        if (said) socket.end(said);
      });
    }));
    await new Promise<void>((resolve) => server.listen(path, resolve));
  }

  start(options: { args?: string[]; env?: Record<string, string>; cwd?: string } = {}): ChildProcess {
    const args = options.args ?? ['--home', this.home, '--agent', 'claude-code'];
    const child = spawn(this.shim, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd: options.cwd ?? this.home,
      env: {
        PATH: process.env['PATH'] ?? '',
        ASAN_OPTIONS: 'detect_leaks=0:exitcode=99',
        UBSAN_OPTIONS: 'halt_on_error=1:exitcode=99',
        ...options.env,
      },
    });
    this.#children.push(child);
    child.stdin?.on('error', () => undefined);
    return child;
  }

  /** Runs the shim with a payload and waits for its end. */
  run(
    payload: string | Buffer,
    options: { args?: string[]; env?: Record<string, string>; cwd?: string } = {},
  ): Promise<Ended> {
    const child = this.start(options);
    const ended = end(child);
    child.stdin?.end(payload);
    return ended;
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const socket of this.#sockets) socket.destroy();
    const pid = Number(this.read('recorder.pid'));
    if (pid > 1) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has gone by itself.
      }
    }
    await new Promise<void>((resolve) => (this.#server ? this.#server.close(() => resolve()) : resolve()));
    rmSync(this.#base, { recursive: true, force: true });
  }
}

export function end(child: ChildProcess): Promise<Ended> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on('data', (b: Buffer) => out.push(b));
  child.stderr?.on('data', (b: Buffer) => err.push(b));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) =>
      resolve({ code, signal, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
    );
  });
}

/** Waits until something is so. */
export async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    if (i > 6000) throw new Error('it never came to be so');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Whether a process blocks SIGTERM: the shim does so before it reads. */
export function blocksSignals(pid: number | undefined): boolean {
  const mask = /^SigBlk:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
}
