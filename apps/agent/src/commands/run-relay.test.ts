// What becomes of a session whose relay is killed: its tunnels end, the record says so, and what connects afterwards is served by another one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { findRelay } from '@nd7/confine';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

afterEach(removeThrowAways);

const PROGRAM = `
  const { connect } = require('node:net');
  const port = Number(process.argv[1]);
  const open = (then) => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.once('data', (bytes) => then(socket, String(bytes)));
  };
  // The first is served without the relay, and starts it.
  open((first) => setTimeout(() => open((second, said) => {
    console.log('open ' + said);
    second.once('close', () => { console.log('closed'); open((third, again) => { console.log('open ' + again); process.exit(0); }); });
  }), 500));`;

(findRelay() === undefined ? it.skip : it)(
  'a relay that is killed',
  async () => {
    const user = join(throwAway('nd7-relay-'), 'user');
    const [project, home] = [join(user, 'project'), join(user, '.nd7')];
    for (const folder of [project, home]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    const server = createServer((socket) => socket.on('error', () => undefined).write('hello')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(home, 'policy.jsonc'), JSON.stringify({ nd7: 1, network: { loopback: [port] } }), {
      mode: 0o600,
    });
    const child = spawn(process.execPath, [BIN, 'run', '--', process.execPath, '-e', PROGRAM, String(port)], {
      cwd: project,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: user },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { out: '', err: '' };
    child.stdout.on('data', (bytes: Buffer) => (said.out += String(bytes)));
    child.stderr.on('data', (bytes: Buffer) => (said.err += String(bytes)));
    const over = once(child, 'exit');
    while (!said.out.includes('open')) await Promise.race([once(child.stdout, 'data'), over]);
    const relays = childrenOf(child.pid as number).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('nd7-relay'),
    );
    expect(relays).toHaveLength(1);
    process.kill(relays[0] as number, 'SIGKILL');
    expect(await over).toEqual([0, null]);
    server.close();
    expect(said.out).toBe('open hello\nclosed\nopen hello\n');
    expect(said.err).toMatch(/the relay of the proxy has ended \(SIGKILL\), and 1 tunnels with it: another one serves/);
    const [session = ''] = readdirSync(join(home, 'sessions')).filter((name) => name.startsWith('run-'));
    const alarms = readFileSync(join(home, 'sessions', session, 'log.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; data: unknown })
      .filter(({ kind }) => kind === 'alarm');
    expect(alarms.map(({ data }) => data)).toEqual([
      { reason: 'relay ended', code: null, signal: 'SIGKILL', tunnels: 1, goes_on: true },
    ]);
  },
  60_000,
);

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1')
      .trim()
      .split(' ')
      .filter((one) => one !== '')
      .map(Number),
  );
}
