// Listeners that hear one session only, tried by somebody else of this machine.
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { OwnListeners } from './own-listeners.js';

let own: OwnListeners;
let heard: string[];
const sockets: Socket[] = [];
beforeEach(async () => {
  heard = [];
  own = await OwnListeners.open(1, 2);
  (own.served[0] as Server).on('connection', (socket: Socket) => {
    heard.push(`${String(socket.remoteAddress)} ${String(socket.remotePort)}`);
    socket.end('served');
  });
});
afterEach(() => {
  own.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** A port that nobody has. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

async function from(localAddress: string, localPort: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: own.ports[0] as number, localAddress, localPort });
  sockets.push(socket.on('error', () => undefined).resume());
  await once(socket, 'connect');
  return socket;
}

it('hears who was announced, before it comes and after', async () => {
  const [early, late] = [await freePort(), await freePort()];
  own.announced(early);
  await once(await from('127.0.0.1', early), 'close');
  const socket = await from('127.0.0.1', late);
  own.announced(late);
  await once(socket, 'close');
  expect(heard).toEqual([`127.0.0.1 ${String(early)}`, `127.0.0.1 ${String(late)}`]);
});

it('takes nobody with the port of who was announced and another address for it', async () => {
  const port = await freePort();
  const waiting = await from('127.0.0.2', port);
  own.announced(port);
  await once(waiting, 'close');
  await once(await from('127.0.0.3', port), 'close');
  expect(heard).toEqual([]);
  await once(await from('127.0.0.1', port), 'close');
  expect(heard).toEqual([`127.0.0.1 ${String(port)}`]);
});

it('forgets who was announced and did not come', async () => {
  const port = await freePort();
  own.announced(port);
  await new Promise((done) => setTimeout(done, 2_100));
  await once(await from('127.0.0.1', port), 'close');
  expect(heard).toEqual([]);
});

it('cuts off who is not announced where enough others wait, and hears who is', async () => {
  const [waits, tooMany, announced] = [await freePort(), await freePort(), await freePort()];
  const first = await from('127.0.0.1', waits);
  await from('127.0.0.1', await freePort());
  await once(await from('127.0.0.1', tooMany), 'close');
  own.announced(announced);
  await once(await from('127.0.0.1', announced), 'close');
  own.announced(waits);
  await once(first, 'close');
  expect(heard).toEqual([`127.0.0.1 ${String(announced)}`, `127.0.0.1 ${String(waits)}`]);
});

it('cuts off who waits when the session ends, and serves nobody afterwards', async () => {
  const waiting = await from('127.0.0.1', await freePort());
  // The listener has heard of it, since connections are heard in their order.
  const late = await freePort();
  own.announced(late);
  await once(await from('127.0.0.1', late), 'close');
  own.close();
  await once(waiting, 'close');
  expect(heard).toEqual([`127.0.0.1 ${String(late)}`]);
});
