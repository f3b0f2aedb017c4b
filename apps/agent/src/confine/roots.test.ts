// Credentials that the proxy puts on by ending TLS: real clients inside, which trust the session's authority and hold a placeholder.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttps } from 'node:https';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { removeThrowAways } from '../testing/recorder.fixture.js';
import { TestSession } from './session.fixture.js';

let session: TestSession;
let seen: string[];
beforeEach(async () => {
  seen = [];
  session = new TestSession({
    network: { allow: ['registry.example.com', 'other.example.com'] },
    credentials: [
      {
        name: 'registry',
        hosts: ['registry.example.com'],
        way: 'terminate',
        placeholderVariable: 'REGISTRY_TOKEN',
        from: { variable: 'REGISTRY_TOKEN' },
      },
    ],
    environment: { pass: ['REGISTRY_TOKEN'] },
  });
  session.environment['REGISTRY_TOKEN'] = 'the-real-one';
  const { cert, key } = session.certificate('registry.example.com', 'other.example.com');
  const tls = { cert: readFileSync(cert), key: readFileSync(key) };
  session.tls = { ca: tls.cert };
  for (const host of ['registry.example.com', 'other.example.com'])
    await session.host(
      host,
      443,
      createHttps(tls, ({ headers }, answer) => {
        seen.push(`${host} ${headers.authorization ?? 'none'}`);
        answer.end(`answer of ${host}`);
      }),
    );
});
afterEach(() => {
  session.close();
  removeThrowAways();
});

const URL_ = 'https://registry.example.com/';
const WITHOUT = ['env', ...['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].flatMap((name) => ['-u', name])];

it.each([
  ['curl by the proxy', ['sh', '-c', `curl -sS -H "Authorization: Bearer $REGISTRY_TOKEN" ${URL_}`]],
  ['curl that knows of no proxy', [...WITHOUT, 'curl', '-sS', '-H', 'Authorization: Bearer x', URL_]],
  ['curl that is told of no roots', ['env', '-u', 'SSL_CERT_FILE', '-u', 'CURL_CA_BUNDLE', 'curl', '-sS', URL_]],
  ['Node', [process.execPath, '-e', `fetch('${URL_}').then((a) => a.text()).then((t) => process.stdout.write(t))`]],
  ['Python', ['python3', '-c', `import urllib.request as r; print(r.urlopen('${URL_}').read().decode(), end='')`]],
])('%s gets the real credential on its requests', async (_what, argv) => {
  const { stdout, stderr } = await session.run(argv);
  expect([stdout, stderr]).toEqual(['answer of registry.example.com', '']);
  expect(seen).toEqual(['registry.example.com Bearer the-real-one']);
  expect(session.decisions.filter(({ via }) => via === 'terminate')).toMatchObject([
    { host: 'registry.example.com', verdict: 'allow' },
  ]);
});

it('holds a placeholder inside, and puts the credential on for no other host', async () => {
  const script =
    'echo $REGISTRY_TOKEN; curl -sS -k -H "Authorization: Bearer mine" https://other.example.com/; env | grep -c the-real-one';
  const { stdout } = await session.run(['sh', '-c', script]);
  expect(stdout).toBe('held-outside-by-nd7\nanswer of other.example.com0\n');
  expect(seen).toEqual(['other.example.com Bearer mine']);
});

it('is believed for the hosts of credentials only: what another host shows is judged by its own certificate', async () => {
  const { stderr } = await session.run(['curl', '-sS', 'https://other.example.com/']);
  expect(stderr).toMatch(/certificate/);
  expect(seen).toEqual([]);
});

it('leaves the machine’s roots in the bundle, and nothing in nd7’s folder', async () => {
  const path = '/etc/ssl/certs/ca-certificates.crt';
  const bundle = existsSync(path) ? readFileSync(path, 'latin1') : rootCertificates.join('\n');
  const { stdout } = await session.run(['sh', '-c', 'cat $SSL_CERT_FILE; echo x >> $SSL_CERT_FILE']);
  expect(stdout.startsWith(bundle)).toBe(true);
  expect(stdout.match(/BEGIN CERTIFICATE/g)?.length).toBe((bundle.match(/BEGIN CERTIFICATE/g)?.length ?? 0) + 1);
  expect(readdirSync(session.nd7Home).filter((name) => name.startsWith('.roots'))).toEqual([]);
});

/** What Node does by itself from 22.21 on: by the proxy, with the roots that it believes. */
const THROUGH_PROXY = `
  const { hostname, port } = new URL(process.env.HTTPS_PROXY);
  const host = 'registry.example.com:443';
  require('http').request({ hostname, port, method: 'CONNECT', path: host, headers: { host } }).on('connect', (_, socket) => {
    const createConnection = () => require('tls').connect({ socket, servername: 'registry.example.com' });
    require('https').get('${URL_}', { createConnection, headers: { host: 'registry.example.com' } }, (answer) => answer.pipe(process.stdout));
  }).end();`;

describe('in tier T2, where the files are read where they lie', () => {
  beforeEach(() => {
    session.tier = 'T2';
  });

  it.each([
    ['curl', ['sh', '-c', `curl -sS -H "Authorization: Bearer $REGISTRY_TOKEN" ${URL_}`]],
    ['Node', [process.execPath, '-e', THROUGH_PROXY]],
    ['Python', ['python3', '-c', `import urllib.request as r; print(r.urlopen('${URL_}').read().decode(), end='')`]],
  ])('%s gets the real credential on its requests', async (_what, argv) => {
    const { stdout, stderr } = await session.run(argv);
    expect([stdout, stderr]).toEqual(['answer of registry.example.com', '']);
    expect(seen).toEqual(['registry.example.com Bearer the-real-one']);
  });

  it('what another host shows is judged by its own certificate', async () => {
    const { stderr } = await session.run(['curl', '-sS', 'https://other.example.com/']);
    expect(stderr).toMatch(/certificate/);
    expect(seen).toEqual([]);
  });

  it('what the person’s own variables name is in the files, which nobody inside writes and which go at the end', async () => {
    const [own, npm] = [session.certificate('own.example.com').cert, join(session.home, 'npm.pem')];
    const text = readFileSync(own, 'utf8');
    writeFileSync(npm, text);
    Object.assign(session.environment, { CURL_CA_BUNDLE: own, NODE_EXTRA_CA_CERTS: own, NPM_CONFIG_CAFILE: npm });
    const names = ['SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS', 'NPM_CONFIG_CAFILE'];
    const script = `for f in ${names.map((name) => `"$${name}"`).join(' ')}; do node -e '
      console.log(require("fs").readFileSync(process.argv[1], "utf8").includes(process.argv[2]))' "$f" "${text.trim()}"; echo x 2>/dev/null >> "$f" || echo kept; done; echo "\${npm_config_cafile-none}"`;
    const { stdout } = await session.run(['sh', '-c', script]);
    expect(stdout).toBe(`${'true\nkept\n'.repeat(4)}none\n`);
    expect(readdirSync(session.nd7Home).filter((name) => name.startsWith('.roots'))).toEqual([]);
  });
});
