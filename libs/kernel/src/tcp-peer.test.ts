import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { tcpPeer, TcpTable } from './tcp-peer.js';

const HERE = '127.0.0.1';

const ending: (() => void)[] = [];
afterEach(() => ending.splice(0).forEach((end) => end()));

/** A server, and what its next connection is. */
async function listening(): Promise<{ port: number; next(): Promise<Socket> }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, HERE);
  await once(server, 'listening');
  ending.push(() => server.close());
  const { port } = server.address() as { port: number };
  const next = async (): Promise<Socket> => {
    const [socket] = (await once(server, 'connection')) as [Socket];
    ending.push(() => socket.destroy());
    return socket.on('error', () => undefined).resume();
  };
  return { port, next };
}

const ends = ({ remotePort = 0, localPort = 0 }: Socket) => ({
  from: { address: HERE, port: remotePort },
  to: { address: HERE, port: localPort },
});

const onLinux = process.platform === 'linux' ? describe : describe.skip;

onLinux('who has the other end of a connection [Linux has /proc/net]', () => {
  it.each([
    ['by IPv4', `connect({ host: '127.0.0.1', port })`],
    ['by an address of IPv6 that stands for it', `connect({ host: '::ffff:127.0.0.1', port })`],
    ['when it has said all that it has to say', `connect({ host: '127.0.0.1', port, allowHalfOpen: true }).end('x')`],
  ])('is found below a process, %s', async (_how, call) => {
    const { port, next } = await listening();
    const coming = next();
    const child = spawn(process.execPath, [
      '-e',
      `const port = ${port}; require('net').${call}; setTimeout(() => 0, 60000)`,
    ]);
    ending.push(() => child.kill('SIGKILL'));
    const socket = await coming;
    // A half that ends comes a moment after the connection.
    await new Promise((done) => setTimeout(done, 50));
    expect(tcpPeer(ends(socket), process.pid)).toEqual({ pid: child.pid, uid: process.geteuid?.() });
    expect(tcpPeer(ends(socket), child.pid ?? 0)?.pid).toBe(child.pid);
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(tcpPeer(ends(socket), process.pid)).toBeUndefined();
  });

  // Root alone has another user connect.
  (process.geteuid?.() === 0 ? it : it.skip)('is nobody where it is another user’s, wherever it stands', async () => {
    const { port, next } = await listening();
    const coming = next();
    const call = `require('net').connect(${port}, '127.0.0.1'); setTimeout(() => 0, 60000)`;
    const child = spawn(process.execPath, ['-e', call], { uid: 65_534, gid: 65_534 });
    ending.push(() => child.kill('SIGKILL'));
    expect(tcpPeer(ends(await coming), process.pid)).toBeUndefined();
  });

  it('is looked for, of many, in one list', async () => {
    const { port, next } = await listening();
    const table = new TcpTable();
    const sockets: Socket[] = [];
    for (let i = 0; i < 3; i++) {
      const coming = next();
      const own = connect(port, HERE);
      ending.push(() => own.destroy());
      sockets.push(await coming);
    }
    const found = (): unknown[] => sockets.map((socket) => tcpPeer(ends(socket), process.pid, table)?.pid);
    expect(found()).toEqual(sockets.map(() => process.pid));
    const coming = next();
    ending.push(() => late.destroy());
    const late = connect(port, HERE);
    sockets.push(await coming);
    // It came after the list was made.
    expect(found()).toEqual([process.pid, process.pid, process.pid, undefined]);
  });

  it('is nobody where it stands elsewhere', async () => {
    const { port, next } = await listening();
    const other = spawn('sleep', ['60']);
    ending.push(() => other.kill('SIGKILL'));
    const coming = next();
    const own = connect(port, HERE);
    ending.push(() => own.destroy());
    const socket = await coming;
    expect(tcpPeer(ends(socket), process.pid)?.pid).toBe(process.pid);
    expect(tcpPeer(ends(socket), other.pid ?? 0)).toBeUndefined();
    expect(tcpPeer({ from: { address: HERE, port: 1 }, to: { address: HERE, port } }, process.pid)).toBeUndefined();
  });
});
