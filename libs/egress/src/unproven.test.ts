// A credential and a server that does not prove to be its host, where the environment tells Node to ask for no proof. Node reads that variable
// of the process, so it is one of its own, of what is built.
import { expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../dist/index.js', import.meta.url));
const PROGRAM = `
import { createServer } from 'node:net';
import { request } from 'node:http';
import { createServer as createTls } from 'node:https';
import { once } from 'node:events';
const { Egress, SessionAuthority } = await import(process.argv[1]);
const host = 'api.example.com';
const authority = new SessionAuthority([host]);
let heard = 0;
const server = createTls({ SNICallback: (_name, done) => done(null, authority.contextFor(host)) }, (asked, answer) => {
  heard++;
  answer.end('yours: ' + asked.headers.authorization);
});
const listening = async (one) => (one.listen(0, '127.0.0.1'), await once(one, 'listening'), one.address().port);
const port = await listening(server);
const source = { layer: 'user', policy: 'user', file: null, line: null, text: '' };
const rule = { host, ports: { from: 443, to: 443 }, allow: true, raw: false, privateAddresses: false, source };
const ask = async (tls) => {
  const egress = new Egress({
    rules: () => ({ hosts: [rule], bounds: [], listen: [], loopback: [], credentials: [] }),
    record: async () => undefined,
    resolve: async () => ['93.184.216.34'],
    at: () => ({ address: '127.0.0.1', port }),
    ...(tls && { tls }),
  });
  const listener = createServer();
  const at = await listening(listener);
  const credential = { name: 'c', hosts: [host], way: 'endpoint', header: 'authorization', value: 'Bearer {}', source };
  egress.serveEndpoint(listener, credential, async () => 'real');
  const [answer] = await once(request({ port: at, host: '127.0.0.1' }).end(), 'response');
  answer.resume();
  return answer.statusCode;
};
const unproven = await ask(undefined);
const before = heard;
const proven = await ask({ ca: authority.certificate });
console.log(JSON.stringify({ unproven, before, proven, after: heard }));
process.exit();
`;

it('is sent to nobody who does not prove to be its host, whatever the environment says', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM, BUILT], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_OPTIONS: '' },
  });
  expect([stdout === '' ? stderr : '', JSON.parse(stdout || 'null')]).toEqual([
    '',
    { unproven: 502, before: 0, proven: 200, after: 1 },
  ]);
});
