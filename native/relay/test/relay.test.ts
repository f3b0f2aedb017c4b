// What the relay reads of its front, and what it may do once it serves. What it does with connections is in libs/egress, with the front that it has.
import { afterEach, expect, it } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess, type IOType, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));
const relay = join(folder, 'build/nd7-relay');
const fuzz = join(folder, 'build/fuzz');

// Without a compiler there is neither.
const built = spawnSync(process.execPath, [join(folder, 'build.mjs'), '--sanitize'], { encoding: 'utf8' });

it('compiles without a warning, also with the sanitizers', () => {
  expect([built.status, built.stderr]).toEqual([0, '']);
});

(existsSync(fuzz) ? it : it.skip)('reads any bytes without harm (fuzz)', () => {
  const ran = spawnSync(fuzz, [String(Date.now() % 1e6), '60000'], { encoding: 'utf8' });
  expect([ran.status, ran.stderr]).toEqual([0, '']);
});

const onLinux = existsSync(relay) ? it : it.skip;

onLinux.each([
  [[]],
  [['1000', '10']],
  [['0', '10', 'f']],
  [['1000', 'ten', 'f']],
  [['1000', '10', 'fx']],
  [['1', '1', 'f'.repeat(65)]],
])('started as %j it is no use, and says what it is', (args) => {
  const { status, stderr } = spawnSync(relay, args, { encoding: 'utf8' });
  expect([status, stderr]).toEqual([2, expect.stringContaining("a part of nd7's proxy")]);
});

const children: ChildProcess[] = [];
// One that a failed test has left would keep this process alive.
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));

interface Started {
  pid: number;
  channel: Duplex;
  over: Promise<unknown>;
  /** The first of the descriptors that it was started with besides. */
  given: Duplex | undefined;
}

/** As the proxy starts it, with one listener. */
async function started(more: IOType[] = []): Promise<Started> {
  const stdio: StdioOptions = ['ignore', 'ignore', 'inherit', 'pipe', 'ipc', ...more];
  const child = spawn(relay, ['1000', '10', 'f'], { stdio, env: {} });
  children.push(child);
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const over = once(child, 'exit');
  child.send({ listener: 0 }, listener, () => listener.close());
  const pid = child.pid as number;
  while (!/^Seccomp:\s+2$/m.test(readFileSync(`/proc/${String(pid)}/status`, 'latin1'))) await sleep(5);
  return { pid, channel: child.stdio[3] as Duplex, over, given: (child.stdio as unknown[])[5] as Duplex | undefined };
}

onLinux('has no way to files and programs when it serves, and ends with its front', async () => {
  const { pid, channel, over } = await started();
  expect(readFileSync(`/proc/${String(pid)}/status`, 'latin1')).toMatch(/^NoNewPrivs:\s+1$/m);
  channel.destroy();
  expect(await over).toEqual([0, null]);
});

onLinux('has no capabilities, whoever started it, and holds nothing that its starter had open', async () => {
  const { pid, channel, over, given } = await started(['pipe']);
  expect(readFileSync(`/proc/${String(pid)}/status`, 'latin1')).toMatch(/^CapPrm:\s+0+\nCapEff:\s+0+$/m);
  // Its end tells of it: of a process that is not dumpable an ordinary user sees no descriptors.
  for (let i = 0; i < 400 && given?.readableEnded !== true; i++) await sleep(5);
  expect(given?.readableEnded).toBe(true);
  channel.destroy();
  await over;
});

onLinux.each([
  ['no frame', Buffer.from([1, 0, 0, 0, 9, 9, 9, 9])],
  ['one that is longer than any', Buffer.from([0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0])],
])('ends at once at %s', async (_what, bytes) => {
  const { channel, over } = await started();
  channel.on('error', () => undefined);
  channel.write(bytes);
  expect(await over).toEqual([1, null]);
});
