// What everybody together may have a server hold in memory.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeRequest } from './frames.js';
import { listen, type HookServer } from './server.js';

let folder: string;
let server: HookServer;
let sockets: Socket[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-server-'));
  sockets = [];
  server = await listen({ folder, name: 'hook' }, ({ payload }) =>
    Promise.resolve({ exit: 0, stdout: String(payload.length), stderr: '' }),
  );
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<Socket> {
  const socket = connect(join(folder, 'hook'));
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function answered(bytes: Buffer): Promise<number> {
  const socket = await open();
  let got = 0;
  socket.on('data', (part: Buffer) => (got += part.length)).end(bytes);
  await once(socket, 'close');
  return got;
}

it('requests that are begun and not ended hold no more than that, and whole ones are answered afterwards', async () => {
  const whole = encodeRequest('hook', {}, Buffer.alloc(60 << 20));
  const begun = whole.subarray(0, whole.length - 1);
  const isCut: boolean[] = [];
  for (let i = 0; i < 6; i++) {
    const socket = await open();
    await new Promise<void>((resolve) => socket.once('close', () => resolve()).write(begun, () => resolve()));
    isCut.push(socket.destroyed);
  }
  expect(isCut).toEqual([false, false, false, false, true, true]);
  for (const socket of sockets) socket.destroy();
  expect(await answered(whole)).toBeGreaterThan(0);
}, 60_000);
