import { once } from 'node:events';
import { statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { emptyRoot, leafHash, nodeHash } from '@nd7/tlog';
import { ORIGIN, temporaryFolder } from '../sequence/log.fixture.js';
import { EmbeddedSigner } from './embedded.js';
import { formatRequest, MAX_MESSAGE, parseAnswer, parseRequest } from './protocol.js';
import { SignerClient } from './socket-client.js';
import { SignerServer } from './socket-server.js';

const one = leafHash(Buffer.from('one'));
const two = leafHash(Buffer.from('two'));

async function served(
  folder = join(temporaryFolder(), 'signer'),
  path = join(folder, 'run', 'signer.sock'),
): Promise<{ folder: string; path: string; stop(): Promise<void> }> {
  const signer = EmbeddedSigner.open(folder);
  const server = await SignerServer.listen(signer, path);
  return {
    folder,
    path,
    stop: async () => {
      await server.close();
      await signer.close();
    },
  };
}

describe('a signer behind a socket', () => {
  it('is the same signer', async () => {
    const { path, stop } = await served();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const client = new SignerClient(path);
    expect(await client.state(ORIGIN)).toMatchObject({ ok: false, refusal: 'no-key' });
    const made = await client.provision(ORIGIN);
    expect(made).toMatchObject({ ok: true, last: { size: 0, root: emptyRoot } });
    const first = await client.sign({ origin: ORIGIN, size: 1, root: one, proof: [] });
    expect(first.ok && first.lines).toHaveLength(1);
    expect(await client.sign({ origin: ORIGIN, size: 1, root: two, proof: [] })).toMatchObject({
      ok: false,
      refusal: 'fork',
      last: { size: 1, root: one },
    });
    expect(await client.sign({ origin: ORIGIN, size: 2, root: nodeHash(one, two), proof: [two] })).toMatchObject({
      ok: true,
    });
    expect(await client.state(ORIGIN)).toMatchObject({ ok: true, last: { size: 2, root: nodeHash(one, two) } });
    await client.close();
    await stop();
  });

  it('answers many requests of many connections', async () => {
    const { path, stop } = await served();
    const clients = Array.from({ length: 5 }, () => new SignerClient(path));
    await clients[0]!.provision(ORIGIN);
    const answers = await Promise.all(
      clients.flatMap((client) =>
        Array.from({ length: 20 }, () => client.sign({ origin: ORIGIN, size: 1, root: one, proof: [] })),
      ),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    await Promise.all(clients.map((client) => client.close()));
    await stop();
  });

  it('is reached again after it was started again; until then it is unreachable', async () => {
    const first = await served();
    const client = new SignerClient(first.path);
    await client.provision(ORIGIN);
    await client.sign({ origin: ORIGIN, size: 1, root: one, proof: [] });
    await first.stop();
    await expect(client.state(ORIGIN)).rejects.toMatchObject({ code: 'unreachable' });
    const second = await served(first.folder, first.path);
    expect(await client.state(ORIGIN)).toMatchObject({ ok: true, last: { size: 1 } });
    await client.close();
    await second.stop();
  });

  it('takes the place of a socket that a killed signer left behind, and of a living one never', async () => {
    const { folder, path, stop } = await served();
    expect(() => EmbeddedSigner.open(folder)).toThrow(expect.objectContaining({ code: 'locked' }));
    await stop();
    const left = EmbeddedSigner.open(folder);
    const before = await SignerServer.listen(left, path); // not closed in between: its socket stays, as after a kill
    const server = await SignerServer.listen(left, path);
    const client = new SignerClient(path);
    expect(await client.provision(ORIGIN)).toMatchObject({ ok: true });
    await client.close();
    await server.close();
    await before.close();
    await left.close();
  });

  it('works under a path longer than a socket address', async () => {
    const folder = join(temporaryFolder(), 'x'.repeat(60), 'y'.repeat(60), 'signer');
    const { path, stop } = await served(folder);
    const client = new SignerClient(path);
    expect(await client.provision(ORIGIN)).toMatchObject({ ok: true });
    await client.close();
    await stop();
  });

  it('gives up on a signer that does not answer', async () => {
    const path = join(temporaryFolder(), 'mute.sock');
    const server = createServer().listen(path).unref();
    await once(server, 'listening');
    const client = new SignerClient(path, 50);
    await expect(client.state(ORIGIN)).rejects.toMatchObject({ code: 'unreachable' });
  });

  it.each([
    ['nothing', ''],
    ['no JSON', 'sign everything'],
    ['a list', '[]'],
    ['another op', '{"op":"adopt","origin":"vault.test/acme"}'],
    ['no origin', '{"op":"state"}'],
    ['a number for the root', '{"op":"sign","origin":"vault.test/acme","size":1,"root":7,"proof":[]}'],
    ['a text for the size', '{"op":"sign","origin":"vault.test/acme","size":"1","root":"AAAA","proof":[]}'],
    ['bad base64', '{"op":"sign","origin":"vault.test/acme","size":1,"root":"====","proof":[]}'],
    ['NUL', '\0'],
  ])('refuses %s', async (_, line) => {
    const { path, stop } = await served();
    const socket = connect(path);
    socket.write(`${line}\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(parseAnswer(answer.toString())).toMatchObject({ refused: { refusal: 'bad-request' } });
    socket.destroy();
    await stop();
  });

  it('hangs up on a line without end', async () => {
    const { path, stop } = await served();
    const socket = connect(path);
    socket.on('error', () => undefined);
    socket.write('x'.repeat(MAX_MESSAGE + 1));
    await once(socket, 'close');
    await stop();
  });

  it('reads back what it writes', () => {
    const request = { op: 'sign' as const, origin: ORIGIN, size: 3, root: one, proof: [two, one] };
    expect(parseRequest(formatRequest(request).trim())).toEqual(request);
  });
});
