// The launcher's end is played here: which listener comes when, and who connects meanwhile.
import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Channel } from './channel.js';

async function listener(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Says something and waits for the answer. */
async function ask(server: Server): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('hello');
  await setTimeout(20);
  return socket;
}

it('loses nobody who connects to a listener while others are on their way', async () => {
  const child = new EventEmitter();
  const channel = new Channel(child as ChildProcess, 2, new Promise(() => undefined));
  const servers = [await listener(), await listener()] as const;
  child.emit('message', { listener: 0 }, servers[0]);
  const early = await ask(servers[0]);
  child.emit('message', { listener: 1 }, servers[1]);
  const opened = await channel.listeners;
  expect(opened).toEqual(servers);
  servers[0].on('connection', (socket) => socket.pipe(socket));
  expect(String((await once(early, 'data'))[0])).toBe('hello');
  const late = await ask(servers[0]);
  expect(String((await once(late, 'data').catch(() => ['']))[0] ?? '')).toBe('hello');
  for (const each of [early, late]) each.destroy();
  for (const server of servers) server.close();
});

it('ends who has connected, where the session ends before anybody has heard', async () => {
  const child = new EventEmitter();
  let end: () => void = () => undefined;
  const channel = new Channel(child as ChildProcess, 2, new Promise<void>((done) => (end = done)));
  const server = await listener();
  child.emit('message', { listener: 0 }, server);
  const early = await ask(server);
  end();
  expect(await channel.listeners).toEqual([]);
  await once(early, 'close');
});
