// A hundred thousand connections from inside one `nd7 run`, in waves, as many at once as the limits let: tunnels that are let through, tunnels that are
// refused, connections to the address of a name, and such as say nothing. Then the session has to work, and its record has to be whole. Says what it
// took: memory of the proxy and the relay, the record's size. node tools/bench/connections.mjs [--count 100000] [--at-once 1500]
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { nd7, Place } from './confine/place.mjs';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, 'at-once': { type: 'string', default: '1500' } },
});
const [count, atOnce] = [values.count, values['at-once']].map(Number);

/** Runs inside. Every fourth connection is of one kind; each ends as soon as it was answered or cut off, and all of a wave are there at once before. */
const INSIDE = `
const net = require('node:net');
const [count, atOnce, port] = process.argv.slice(1).map(Number);
const tally = {};
const head = (host) => 'CONNECT ' + host + ' HTTP/1.1\\r\\nHost: ' + host + '\\r\\n\\r\\n';
const one = (i) => new Promise((done) => {
  const kind = ['let through', 'refused', 'by address', 'silent'][i % 4];
  const socket = net.connect(...(kind === 'by address' ? [443, '198.18.9.9'] : [3128, '127.0.0.1']));
  let end = 'cut off';
  let isOver = false;
  const over = () => { if (isOver) return; isOver = true; clearTimeout(timer); tally[kind + ': ' + end] = (tally[kind + ': ' + end] ?? 0) + 1; done(socket); };
  const timer = setTimeout(() => { end = kind === 'silent' ? 'held' : 'no answer'; over(); }, kind === 'silent' ? 50 : 30000);
  socket.once('connect', () => {
    if (kind === 'let through') socket.write(head('localhost:' + port));
    if (kind === 'refused') socket.write(head('unlisted.example.com:443'));
  });
  socket.once('data', (bytes) => { end = String(bytes).slice(9, 12); over(); });
  socket.on('error', () => undefined).once('close', over);
});
(async () => {
  for (let at = 0; at < count; at += atOnce) {
    const wave = await Promise.all(Array.from({ length: Math.min(atOnce, count - at) }, (_, i) => one(at + i)));
    for (const socket of wave) socket.destroy();
  }
  const last = net.connect(3128, '127.0.0.1');
  last.write(head('localhost:' + port));
  last.once('data', (bytes) => { console.log(JSON.stringify({ tally, last: String(bytes).slice(9, 12) })); process.exit(); });
})();`;

const place = new Place();
try {
  const server = createServer((socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const file = join(place.nd7Home, 'policy.jsonc');
  const policy = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...policy, network: { loopback: [String(port)] } }), { mode: 0o600 });
  const began = performance.now();
  const child = place.start(
    process.execPath,
    [nd7, 'run', '--', process.execPath, '-e', INSIDE, count, atOnce, port].map(String),
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const most = { nd7: 0, 'nd7-relay': 0 };
  const look = setInterval(() => {
    for (const [name, pid] of processesOf(child.pid)) most[name] = Math.max(most[name], residentOf(pid));
  }, 100);
  let said = '';
  child.stdout.on('data', (bytes) => (said += bytes));
  const [code] = await once(child, 'close');
  clearInterval(look);
  const seconds = (performance.now() - began) / 1000;
  const { tally, last } = JSON.parse(said);
  const verified = (await place.run(process.execPath, [nd7, 'verify'])).trim();
  const folder = join(place.nd7Home, 'sessions');
  const bytes = filesBelow(folder).reduce((sum, path) => sum + statSync(path).size, 0);
  console.log({ code, seconds: Math.round(seconds), ...tally, 'the last one': last });
  console.log({ 'peak MiB': most, 'record MiB': Math.round(bytes / 2 ** 20) });
  console.log(verified);
  server.close();
} finally {
  await place.close();
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** nd7 itself and the relay below it. */
function processesOf(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean);
    const relay = children.find((child) => readFileSync(`/proc/${child}/comm`, 'latin1') === 'nd7-relay\n');
    return [['nd7', pid], ...(relay === undefined ? [] : [['nd7-relay', relay]])];
  } catch {
    return [];
  }
}

/** Mebibytes. */
function residentOf(pid) {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}
