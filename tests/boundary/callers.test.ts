// Who makes a connection: the process that the supervisor saw, the command in whose tree it stands, and its call; in the real boundary, with programs that connect.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { Desk, WHO } from './broker.fixture.js';

/** A client of the proxy and what it says: `dial(send, want)` answers how many bytes came back. */
const CLIENT = `
import os, socket, sys, time
proxy = os.environ['HTTP_PROXY'].split('//')[1].split(':')
port = int(open(os.path.expanduser('~/port')).read())
def tunnel(bind=None):
  s = socket.socket()
  if bind: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', bind))
  s.connect((proxy[0], int(proxy[1])))
  s.sendall(b'CONNECT localhost:%d HTTP/1.1\\r\\nHost: localhost:%d\\r\\n\\r\\n' % (port, port))
  said = b''
  while not said.endswith(b'\\r\\n\\r\\n'):
    piece = s.recv(1)
    if not piece: break
    said += piece
  return s, said[9:12].decode()
def dial(send=10):
  s, status = tunnel()
  if status == '200':
    s.sendall(b'x' * send)
    s.shutdown(socket.SHUT_WR)
    got = 0
    while True:
      piece = s.recv(65536)
      if not piece: break
      got += len(piece)
  s.close()
  return status
`;

/** Shell functions of the agent: what its hooks say, and commands by its shell. */
const AGENT = `
SHIM=$(ls $HOME/.nd7/bin/nd7-shim 2>/dev/null || find $HOME/.nd7 -name '*shim*' -type f 2>/dev/null | head -1)
hook() { printf '%s' "$1" | "$SHIM" --home "$HOME/.nd7" --agent claude-code > /dev/null; }
before() { hook '{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"'$1'","tool_input":{"command":"'"$2"'"}}'; }
after() { hook '{"session_id":"s1","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"'$1'","tool_input":{},"tool_response":{}}'; }
call() { before $1 "$2"; $S -c "$2"; r=$?; after $1; return $r; }
hook '{"session_id":"s1","hook_event_name":"SessionStart","source":"startup"}'
`;

let desk: Desk;
let server: Server;
/** Answers twice what it has heard when the other side has said all. */
beforeEach(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    let heard = 0;
    socket.on('error', () => undefined).on('data', (bytes) => (heard += bytes.length));
    socket.on('end', () => socket.end(Buffer.alloc(2 * heard)));
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
});
afterEach(() => {
  server.close();
  desk.close();
});

function sit(user: { uid?: number; gid?: number }, tier: 'T1' | 'T2', isOpen = true): void {
  desk = new Desk(user, tier);
  const { port } = server.address() as AddressInfo;
  const policy = JSON.stringify({ nd7: 1, network: { loopback: isOpen ? [port] : [] } });
  spawnSync(
    'sh',
    ['-c', `umask 077; mkdir -p ~/.nd7; printf '%s' '${policy}' > ~/.nd7/policy.jsonc; printf ${port} > ~/port`],
    {
      env: desk.environment,
      ...user,
    },
  );
  writeFileSync(join(desk.project, 'client.py'), CLIENT);
}
/** Runs the agent to its end, while this process goes on serving. */
async function run(script: string, meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<string> {
  const child = desk.start(AGENT + script);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => (said += bytes.toString()));
  const over = once(child, 'close');
  const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
  await Promise.all([over, meanwhile()]);
  clearTimeout(late);
  return said;
}

const appears = async (name: string): Promise<string> => {
  const path = join(desk.project, name);
  const has = (): boolean => existsSync(path) && readFileSync(path, 'utf8') !== '';
  for (let i = 0; i < 400 && !has(); i++) await new Promise((done) => setTimeout(done, 50));
  return readFileSync(path, 'utf8').trim();
};
const go = (name: string): void => writeFileSync(join(desk.project, name), 'go');
/** What the entries of connections say of who made them, in the order in which they came. */
const ties = (kind = 'network'): unknown[][] =>
  desk.of(kind).map(({ tied, tool_use_id, command }) => [tied, tool_use_id ?? null, command ?? null]);
/** A command of Python's that uses the client. */
const py = (text: string): string => `python3 -c 'from client import *; ${text}'`;
/** Shell: waits for a file. */
const wait = (name: string): string => `until [ -s ${name} ]; do sleep 0.05; done`;

describe.each(WHO)('%s: connections, as %s', (tier, _name, user) => {
  it('of parallel calls belong to the right one, with the bytes that went through them', async () => {
    sit(user, tier);
    const dials = [1, 2, 3, 4].map((i) => `call call-${i} "python3 -c 'from client import *; dial(${i}000)'" &`);
    expect(await run(`${dials.join('\n')}\nwait`)).toBe('');
    const calls = new Map(desk.of('exec').map(({ command, tool_use_id }) => [command, tool_use_id]));
    expect(calls.size).toBe(4);
    const network = desk.of('network');
    expect(network.map(({ connection }) => connection)).toEqual([1, 2, 3, 4]);
    for (const { tied, command, tool_use_id, pid, program } of network) {
      expect([tied, tool_use_id, program]).toEqual(['process', calls.get(command), 'python3']);
      expect(pid).toBe(desk.of('exec.end').find((end) => end['command'] === command)?.['pid']);
    }
    const ends = desk.entries().filter(({ source, kind }) => source === 'effect:egress' && kind === 'network.end');
    expect(ends).toHaveLength(4);
    for (const { data } of ends) {
      const bytes = Number(String(data['tool_use_id']).slice(-1)) * 1000;
      expect(data).toMatchObject({
        via: 'connect',
        host: 'localhost',
        sent: bytes,
        received: 2 * bytes,
        tied: 'process',
      });
      expect(network.find(({ connection }) => connection === data['connection'])).toMatchObject({
        tool_use_id: data['tool_use_id'],
      });
    }
  });

  it('of a process that outlives its call are that call’s, also while another one alone runs', async () => {
    sit(user, tier);
    const left = `(setsid sh -c "${wait('go')}; python3 late.py" > /dev/null 2>&1 &)`;
    writeFileSync(join(desk.project, 'late.py'), "from client import *\nopen('late', 'w').write(dial())\n");
    writeFileSync(join(desk.project, 'first.sh'), left);
    await run(`call call-1 'sh first.sh'
      before call-2 'sleep'
      echo go > go; ${wait('late')}
      ${py('dial()')}
      after call-2
      ${py('dial()')}`);
    expect(ties()).toEqual([
      ['process', 'call-1', 'c-1'],
      // The agent's own, as its hooks say.
      ['hooks', 'call-2', null],
      ['none', null, null],
    ]);
  });

  it('of a process that has killed what stood above it are no other call’s', async () => {
    sit(user, tier);
    // The shell's parent is its keeper; whoever has a session of its own is not killed with it.
    writeFileSync(
      join(desk.project, 'stray.py'),
      `import os, signal, time
keeper = os.getppid()
if os.fork() == 0:
  os.setsid()
  while os.getppid() != 1 and os.getppid() == keeper: pass
  if os.fork() == 0:
    while not os.path.exists('go'): time.sleep(0.02)
    from client import *
    open('stray', 'w').write(dial())
  os._exit(0)
os.kill(keeper, signal.SIGKILL)
`,
    );
    await run(`call call-1 'exec python3 stray.py'
      before call-2 'sleep'
      echo go > go; ${wait('stray')}
      after call-2`);
    expect(ties()).toEqual([['none', null, null]]);
    expect(desk.of('network')).toMatchObject([{ program: 'python3', pid: expect.any(Number) as number }]);
  });

  it('that take the port of another call’s are not taken for that one’s', async () => {
    sit(user, tier);
    const taking = `import struct
def again(end):
  s, status = tunnel(bind=20000 + os.getuid() % 10000 + ${tier === 'T1' ? 1 : 2})
  s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
  s.close()
  return status
`;
    writeFileSync(join(desk.project, 'taking.py'), `from client import *\n${taking}for i in range(20): again(i)\n`);
    const turns = Array.from({ length: 3 }, (_, i) => `call call-${i} 'python3 taking.py # ${i}'`);
    await run(turns.join('\n'));
    const by = desk.of('network').map(({ tied, tool_use_id }) => `${String(tied)} ${String(tool_use_id)}`);
    expect(by).toEqual([0, 1, 2].flatMap((i) => Array.from({ length: 20 }, () => `process call-${i}`)));
  });

  it('that a grant for a call lets through are those of the call’s processes, not those of an ended one’s', async () => {
    sit(user, tier, false);
    writeFileSync(
      join(desk.project, 'left.py'),
      `import os, time
while not os.path.exists('left'): time.sleep(0.02)
from client import *
open('said', 'w').write(dial())
`,
    );
    writeFileSync(join(desk.project, 'leave.sh'), '(setsid python3 left.py > /dev/null 2>&1 &)');
    writeFileSync(
      join(desk.project, 'own.py'),
      `import os, sys, time
from client import *
s, status = tunnel()
open('open.' + sys.argv[1], 'w').write(status)
while not os.path.exists('end-' + sys.argv[1]): time.sleep(0.02)
`,
    );
    writeFileSync(join(desk.project, 'one.sh'), `echo x > began; ${wait('go')}; python3 own.py 1`);
    await run(
      `call call-0 'sh leave.sh'
      call call-1 'sh one.sh'
      ${py('print(dial(), file=open("after-1", "w"))')}
      call call-2 'python3 own.py 2'
      ${py('print(dial(), file=open("after-2", "w"))')}`,
      async () => {
        const { port } = server.address() as AddressInfo;
        await appears('began');
        expect(desk.nd7('allow', '--yes', '--for', 'call', 'net', `localhost:${port}`)).toMatchObject({ status: 0 });
        // What an ended call has left is not under it; the call that ran already is.
        go('left');
        expect(await appears('said')).toBe('403');
        go('go');
        expect(await appears('open.1')).toBe('200');
        go('end-1');
        // The agent itself is, as before: of which call it acts is known to it alone.
        expect(await appears('after-1')).toBe('200');
        expect(await appears('open.2')).toBe('200');
        go('end-2');
        expect(await appears('after-2')).toBe('403');
      },
    );
    const network = desk.of('network').map(({ verdict, tied, tool_use_id }) => [verdict, tied, tool_use_id ?? null]);
    expect(network).toEqual([
      ['deny', 'process', 'call-0'],
      ['allow', 'process', 'call-1'],
      ['allow', 'none', null],
      ['allow', 'process', 'call-2'],
      ['deny', 'none', null],
    ]);
    expect(desk.of('revoke')).toMatchObject([{ reason: 'call ended' }]);
  });
});
