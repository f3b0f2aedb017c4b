// Asks an HTTPS server as it is told, a line of JSON each: { host, port, through, path, times, atOnce, keepAlive }; `through` is the port of a proxy, or absent. The same code opens
// both kinds of connections, so that what differs is the proxy. Answers how long all took and how many bytes came. client.mjs CERTIFICATE
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as tlsConnect } from 'node:tls';

const ca = readFileSync(process.argv[2]);

async function open({ host, port, through }) {
  const socket = connect({ host: '127.0.0.1', port: through ?? port, noDelay: true });
  await once(socket, 'connect');
  if (through !== undefined) {
    socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    if (!answer.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error(`the proxy answered ${answer}`);
  }
  const secure = tlsConnect({ socket, servername: host, ca });
  await once(secure, 'secureConnect');
  return secure;
}

async function ask(agent, { host, path }) {
  const [answer] = await once(get({ agent, host, path }), 'response');
  let bytes = 0;
  answer.on('data', (part) => (bytes += part.length));
  await once(answer, 'end');
  if (answer.statusCode !== 200) throw new Error(`the server answered ${answer.statusCode}`);
  return bytes;
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const agent = new Agent({ keepAlive: task.keepAlive });
  agent.createConnection = (_, done) => void open(task).then((socket) => done(null, socket), done);
  let [bytes, left] = [0, task.times];
  const start = process.hrtime.bigint();
  // Not by the agent's own limit: it does not count connections that are still being made.
  const inTurn = async () => {
    while (left-- > 0) {
      const came = await ask(agent, task);
      bytes += came;
    }
  };
  await Promise.all(Array.from({ length: task.atOnce }, inTurn));
  const ms = Number(process.hrtime.bigint() - start) / 1e6;
  agent.destroy();
  process.stdout.write(`${JSON.stringify({ ms, bytes })}\n`);
}
