import { afterEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { Inflow } from './inflow.js';
import { join } from './tunnel.js';

const servers: Server[] = [];
async function listen(take: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, take).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
afterEach(() => servers.splice(0).forEach((server) => server.close()));

/** A server, a program and the join between them: what the program gets. */
async function through(send: (server: Socket) => void, read: (program: Socket) => Promise<void>): Promise<void> {
  const upstreamPort = await listen(send);
  let joined: Promise<void> | undefined;
  const port = await listen((client) => {
    const inflow = new Inflow();
    const upstream = connect({ port: upstreamPort, host: '127.0.0.1', allowHalfOpen: true, onread: inflow.onread });
    joined = once(upstream, 'connect').then(async () => {
      // Bytes of the server may be there before anybody takes them.
      await sleep(20);
      join(client, upstream, inflow);
    });
  });
  const program = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await read(program);
  await joined;
}

async function digest(socket: Socket): Promise<{ length: number; sha256: string }> {
  const hash = createHash('sha256');
  let length = 0;
  socket.on('data', (bytes: Buffer) => {
    hash.update(bytes);
    length += bytes.length;
  });
  await once(socket, 'end');
  socket.end();
  return { length, sha256: hash.digest('hex') };
}

describe('what a server sends', () => {
  it('comes as it was sent, however it is cut', async () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 10_000, max: 400_000 })), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const parts = lengths.map((length, i) => Buffer.alloc(length, `${String(i)}-part of it `));
        const whole = Buffer.concat(parts);
        let got;
        await through(
          (server) => {
            for (const part of parts) server.write(part);
            server.end();
          },
          async (program) => {
            got = await digest(program);
          },
        );
        expect(got).toEqual({ length: whole.length, sha256: createHash('sha256').update(whole).digest('hex') });
      }),
      { numRuns: 25 },
    );
  });

  it('waits for a program that does not read, whole and in order', async () => {
    const body = Buffer.alloc(24 << 20);
    for (let i = 0; i < body.length; i += 4) body.writeUInt32LE(i, i);
    let got;
    await through(
      (server) => void server.end(body),
      async (program) => {
        await sleep(200);
        got = await digest(program);
      },
    );
    expect(got).toEqual({ length: body.length, sha256: createHash('sha256').update(body).digest('hex') });
  });

  it('may be answered after its end, and ends with the program', async () => {
    let heard = '';
    await through(
      (server) => {
        server.end('question');
        server.on('data', (bytes) => (heard += String(bytes)));
      },
      async (program) => {
        const [said] = (await once(program, 'data')) as [Buffer];
        await once(program, 'end');
        program.end(`answer to ${String(said)}`);
        await once(program, 'close');
        await sleep(50);
      },
    );
    expect(heard).toBe('answer to question');
  });
});
