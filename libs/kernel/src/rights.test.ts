import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KernelError, receiveDescriptors } from './index.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-rights-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The accepted end of a connection, which Node does not read, after `program` (Python, with `s` connected) has run. */
async function afterSending(program: string): Promise<{ fd: number; close(): void }> {
  const path = join(folder, 'socket');
  const server = createServer({ pauseOnConnect: true }).listen(path);
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const begin = `import socket, array, os, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n`;
  const ran = spawnSync('python3', ['-c', begin + program, path], { encoding: 'utf8' });
  expect(ran.stderr).toBe('');
  const [socket] = await accepted;
  const fd = (socket as unknown as { _handle: { fd: number } })._handle.fd;
  return {
    fd,
    close: () => {
      socket.destroy();
      server.close();
    },
  };
}

const hasPython = spawnSync('python3', ['--version']).status === 0;
const onLinux = process.platform === 'linux' && hasPython ? describe : describe.skip;

onLinux('open files through a socket', () => {
  it('come with the bytes that they were sent with, and are the sender’s files', async () => {
    writeFileSync(join(folder, 'a'), 'content of a');
    writeFileSync(join(folder, 'b'), 'content of b');
    const { fd, close } = await afterSending(
      `d = os.path.dirname(sys.argv[1])\n` +
        `f = [os.open(d + '/' + n, os.O_RDONLY) for n in 'ab']\n` +
        `s.sendmsg([b'two'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', f))])\n` +
        `s.sendmsg([b'none'])\n`,
    );
    const first = receiveDescriptors(fd);
    expect(Buffer.from(first?.bytes ?? []).toString()).toBe('two');
    expect(first?.descriptors.map((one) => readFileSync(one, 'utf8'))).toEqual(['content of a', 'content of b']);
    for (const one of first?.descriptors ?? []) closeSync(one);
    expect(receiveDescriptors(fd)).toEqual({ bytes: new Uint8Array(Buffer.from('none')), descriptors: [] });
    // The sender has ended.
    expect(receiveDescriptors(fd)).toEqual({ bytes: new Uint8Array(), descriptors: [] });
    close();
  });

  it('are waited for by nobody', async () => {
    const path = join(folder, 'quiet');
    const server = createServer({ pauseOnConnect: true }).listen(path);
    await once(server, 'listening');
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect(path);
    const [socket] = await accepted;
    expect(receiveDescriptors((socket as unknown as { _handle: { fd: number } })._handle.fd)).toBeUndefined();
    client.destroy();
    socket.destroy();
    server.close();
  });

  it('are not left open where there are as many as the kernel takes', async () => {
    const { fd, close } = await afterSending(
      `f = [os.open('/dev/null', os.O_RDONLY)] * 253\n` +
        `s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', f))])\n`,
    );
    const received = receiveDescriptors(fd);
    expect(received?.descriptors).toHaveLength(253);
    for (const one of received?.descriptors ?? []) {
      expect(fstatSync(one).isCharacterDevice()).toBe(true);
      closeSync(one);
    }
    close();
  });

  it('come through no other descriptor', () => {
    const file = openSync(join(folder, 'file'), 'w');
    expect(() => receiveDescriptors(file)).toThrow(KernelError);
    closeSync(file);
  });
});
