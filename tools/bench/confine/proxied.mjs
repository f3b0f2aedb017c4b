// What the proxy costs: the same requests to an HTTPS server on loopback, directly and through it, in turns. Client, proxy, relay and server are processes of their own, as they
// are in a session; they share this machine's processors, which a client on a network does not.
// Rows: eight kept connections are what npm, pip and an agent's client of its API have; a connection each is curl in a loop, or a client without a pool; one by one has nothing that
// runs beside it, so that each wait is seen whole: kept alive it is a client that asks when it was answered, by a connection each a loop of scripts; the server is
// no way off, so that what the proxy adds is seen at its largest. A body is a download. Times are of the clock and need a quiet machine. `processor` is what all processes together
// took (user and system), through the proxy and directly: it is there whatever else runs, and says what the clock would where the processors are all busy.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpus } from 'node:os';
import { nativePath } from '@nd7/kernel';
import { verdict } from '../judge/verdict.mjs';
import { find, median } from './place.mjs';

const MOST = 1.15;
const HOST = 'registry.bench.example';
const BODY = 500_000_000;

async function certificate(place) {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(place.base, name));
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const name = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`];
  await place.run('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', cert]);
  return { key, cert };
}

export async function measureProxy(place, scale) {
  if (find('openssl') === undefined) {
    console.log('proxy: skipped: openssl, which makes the server’s certificate, is not installed');
    return;
  }
  const { key, cert } = await certificate(place);
  const program = (name, ...args) => place.converse(process.execPath, [join(import.meta.dirname, name), ...args]);
  const server = program('server.mjs', key, cert);
  const { port } = await server.hear();
  const relay = nativePath('nd7-relay');
  if (!existsSync(relay)) console.log('the relay is not built: the proxy moves the bytes itself');
  const proxy = program('proxy.mjs', HOST, String(port), place.nd7Home, existsSync(relay) ? relay : '');
  const { port: through } = await proxy.hear();
  const client = program('client.mjs', cert);

  const small = { path: '/small', times: 1000 };
  const tasks = [
    { name: '1,000 requests, kept alive, 8 at once', ...small, atOnce: 8, keepAlive: true, rounds: 3 },
    { name: '1,000 requests, a connection each, 8 at once', ...small, atOnce: 8, keepAlive: false, rounds: 3 },
    { name: '1,000 requests, kept alive, one by one', ...small, atOnce: 1, keepAlive: true, rounds: 3 },
    {
      name: '200 requests, a connection each, one by one',
      ...small,
      times: 200,
      atOnce: 1,
      keepAlive: false,
      rounds: 3,
    },
    { name: 'a body of 500 MB', path: `/${BODY}`, times: 1, atOnce: 1, keepAlive: false, rounds: 3 },
  ];
  console.log(
    '| over loopback | direct p50 ms | proxy p50 ms | proxy / direct | at most 1.15 | processor | |\n|---|---:|---:|---:|---|---:|---|',
  );
  for (const { name, rounds, ...task } of tasks) {
    const took = { direct: [], proxy: [] };
    const worked = { direct: [], proxy: [] };
    for (let round = -1; round < Math.max(2, Math.round(rounds * scale)); round++)
      for (const side of ['direct', 'proxy']) {
        const before = processorOf([client, server, proxy]);
        const { ms, bytes } = await client.ask({ ...task, host: HOST, port, ...(side === 'proxy' ? { through } : {}) });
        if (bytes !== (task.path === '/small' ? 200 * task.times : BODY)) throw new Error(`${bytes} bytes came`);
        if (round < 0) continue; // The first time is for warming.
        took[side].push(ms);
        worked[side].push(processorOf([client, server, proxy]) - before);
      }
    const [direct, proxied] = [median(took.direct), median(took.proxy)];
    const note =
      task.times === 1
        ? `${(BODY / 1e3 / direct).toFixed(0)} and ${(BODY / 1e3 / proxied).toFixed(0)} MB/s`
        : `${((proxied - direct) / task.times).toFixed(2)} ms more a request`;
    const ratio = proxied / direct;
    // The least is what others on this machine disturbed least.
    const work = Math.min(...worked.proxy) / Math.min(...worked.direct);
    const reached = verdict(ratio <= MOST);
    console.log(
      `| ${name} | ${direct.toFixed(0)} | ${proxied.toFixed(0)} | ${ratio.toFixed(2)} | ${reached} | ${work.toFixed(2)} | ${note} |`,
    );
  }
  for (const { end } of [client, proxy, server]) await end();
  if (cpus().length < 3)
    console.log(
      'client, proxy and server share fewer than three processors here: what the proxy computes is added to the time, not beside it',
    );
}

/** Milliseconds of processor time that programs and their children have taken. */
function processorOf(programs) {
  const of = (pid) =>
    readdirSync(`/proc/${pid}/task`).reduce((sum, task) => {
      const read = (name) => readFileSync(`/proc/${pid}/task/${task}/${name}`, 'latin1');
      const children = read('children').split(' ').filter(Boolean);
      return (
        sum + Number(read('schedstat').split(' ', 1)[0]) / 1e6 + children.reduce((all, child) => all + of(child), 0)
      );
    }, 0);
  return programs.reduce((sum, { pid }) => sum + of(pid), 0);
}
