// Which unix sockets a session in T1 connects to: its own and granted ones, whenever others are bound; and that connections are otherwise what they are outside.
import { createSocket } from 'node:dgram';
import { createConnection, createServer, type AddressInfo, type Server } from 'node:net';
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildLaunchers, Machine, until, USERS } from './session.fixture.js';

beforeAll(buildLaunchers, 120_000);

/** A server of the host's that says who it is. */
async function serve(path: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('host'));
  await new Promise<void>((done) => server.listen(path, done));
  chmodSync(path, 0o777);
  return server;
}

/** Python's part of a script: `dial(address)` answers what it reads, or the error's name. */
const DIAL = `
import errno, os, socket, struct, sys, threading, time
def dial(to, kind=socket.SOCK_STREAM, family=socket.AF_UNIX):
  s = socket.socket(family, kind)
  try:
    s.connect(to)
    return s.recv(100).decode()
  except OSError as e:
    return errno.errorcode[e.errno]
  finally:
    s.close()
def listen(at, say=b'inside'):
  s = socket.socket(socket.AF_UNIX)
  s.bind(at)
  s.listen(8)
  def work():
    while True:
      c, _ = s.accept()
      try: c.sendall(say)
      except BrokenPipeError: pass
      c.close()
  threading.Thread(target=work, daemon=True).start()
  return s
`;

describe.each(USERS)('a session of %s', (_who, user) => {
  let machine: Machine;
  const servers: Server[] = [];
  beforeEach(() => {
    machine = new Machine(user);
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done))));
    machine.close();
  });

  const script = (text: string): string => {
    machine.file('project/t.py', `${DIAL}${text}`);
    return 'python3 t.py';
  };

  it('connects to no socket that the host binds after the start, by any way to it', async () => {
    mkdirSync(join(machine.home, 'shown'));
    const late = [join(machine.project, 'late'), join(machine.home, 'shown', 'late')];
    const session = machine.start([
      '/bin/sh',
      '-c',
      script(`
print('up', flush=True)
while not os.path.exists('go'): time.sleep(0.02)
os.symlink('late', 'link')
os.link('late', 'second') if os.access('late', os.W_OK) else None
d = os.open('.', os.O_RDONLY)
for to in ${JSON.stringify(late)} + ['late', './late', 'link', '/proc/self/cwd/late', '/dev/fd/%d/late' % d, '/proc/self/root' + os.getcwd() + '/late', 'second']:
  print(to[-12:], dial(to), dial(to, socket.SOCK_SEQPACKET))
os.rename('late', 'moved')
print(dial('moved'))`),
    ]);
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    session.process.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await until('the session is up', () => said.includes('up'));
    for (const path of late) servers.push(await serve(path));
    if (user !== undefined) for (const path of late) chownSync(path, user.uid, user.gid);
    mkdirSync(join(machine.project, 'go'));
    expect(await session.ended).toMatchObject({ code: 0 });
    session.prepared.clean();
    expect(said).not.toContain('host');
    expect(said.match(/EACCES/g)?.length).toBeGreaterThan(12);
    expect(machine.heard).toContainEqual(
      expect.objectContaining({ verdict: 'refused', path: join(machine.project, 'late') }),
    );
  });

  it('does not while threads exchange the path, the socket and what the path leads to', async () => {
    const session = machine.start([
      '/bin/sh',
      '-c',
      script(`
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
listen('own')
print('up', flush=True)
while not os.path.exists('go'): time.sleep(0.02)
buffer = ctypes.create_string_buffer(struct.pack('H108s', 1, b'own'))
names = [struct.pack('H108s', 1, b'own'), struct.pack('H108s', 1, b'late'), struct.pack('!HH4s', 0x0200, 9, bytes([127, 0, 0, 1]))]
over = False
def exchange():
  n = 0
  while not over:
    ctypes.memmove(buffer, names[n % 3], len(names[n % 3]))
    n += 1
def links():
  n = 0
  while not over:
    try:
      os.symlink(['own', 'late'][n % 2], 'turn.new'); os.rename('turn.new', 'turn')
    except OSError: pass
    n += 1
threading.Thread(target=exchange, daemon=True).start()
threading.Thread(target=links, daemon=True).start()
heard = {}
for i in range(1000):
  s = socket.socket(socket.AF_UNIX)
  s.settimeout(2)
  to = ctypes.create_string_buffer(struct.pack('H108s', 1, b'turn')) if i % 2 else buffer
  if libc.connect(s.fileno(), to, 110) == 0:
    try: said = s.recv(10).decode()
    except OSError: said = 'error'
  else: said = 'refused'
  heard[said] = heard.get(said, 0) + 1
  s.close()
over = True
print(sorted(heard))`),
    ]);
    let said = '';
    session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    session.process.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await until('the session is up', () => said.includes('up'));
    servers.push(await serve(join(machine.project, 'late')));
    mkdirSync(join(machine.project, 'go'));
    expect(await session.ended).toMatchObject({ code: 0 });
    session.prepared.clean();
    expect(said).not.toContain('host');
    expect(said).toContain("'inside'");
  }, 60_000);

  it('binds no protected name while threads exchange the address, or processes the folder that it goes through', async () => {
    machine.protect('.envrc');
    mkdirSync(join(machine.project, 'free'));
    mkdirSync(join(machine.project, 'kept'));
    machine.protect('*', { under: [join(machine.project, 'kept')] });
    const { stdout, stderr } = await machine.run(
      script(`
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
names = [struct.pack('H108s', 1, b'\\0abstract'), struct.pack('H108s', 1, b'.envrc')]
buffer = ctypes.create_string_buffer(names[0])
over = False
def exchange():
  n = 0
  while not over:
    ctypes.memmove(buffer, names[n % 2], 110)
    n += 1
threading.Thread(target=exchange, daemon=True).start()
for i in range(3000):
  s = socket.socket(socket.AF_UNIX)
  libc.bind(s.fileno(), buffer, 110)
  s.close()
over = True
print(os.path.lexists('.envrc'))
other = os.fork()
if other == 0:
  while True:
    os.chdir('free'); os.chdir('../kept'); os.chdir('..')
    if os.getppid() == 1: os._exit(0)
for i in range(3000):
  s = socket.socket(socket.AF_UNIX)
  try: s.bind('/proc/%d/cwd/s%d' % (other, i))
  except OSError: pass
  s.close()
os.kill(other, 9)
print(os.listdir('kept'))`),
    );
    expect(stderr).toBe('');
    expect(stdout).toBe('False\n[]\n');
  }, 60_000);

  it('connects nowhere by a socket that came in from outside, and is given none of datagrams', async () => {
    const host = createServer((socket) => socket.on('error', () => undefined).end('host'));
    await new Promise<void>((done) => host.listen(0, '127.0.0.1', done));
    servers.push(host);
    const { port } = host.address() as AddressInfo;
    const client = createConnection({ port, host: '127.0.0.1' });
    await new Promise((done) => client.once('connect', done));
    const fd = (client as unknown as { _handle: { fd: number } })._handle.fd;
    const run = async (stdin: number): Promise<string> => {
      const session = machine.start(
        [
          '/bin/sh',
          '-c',
          script(`
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.connect(0, bytes(16), 16), ctypes.get_errno())
s = socket.socket(fileno=os.dup(0))
try:
  s.connect(('127.0.0.1', ${port})); print(s.recv(10))
except OSError as e: print(errno.errorcode[e.errno])`),
        ],
        {},
        { stdio: [stdin, 'pipe', 'pipe'] },
      );
      let said = '';
      session.process.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
      session.process.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
      const { failure } = await session.ended;
      session.prepared.clean();
      return said + JSON.stringify(failure ?? '');
    };
    const said = await run(fd);
    client.destroy();
    expect(said).toBe('-1 13\nEACCES\n""');
    const datagrams = createSocket('udp4');
    await new Promise<void>((done) => datagrams.bind(0, '127.0.0.1', done));
    const number = (datagrams as unknown as { [key: symbol]: { handle: { fd: number } } })[
      Object.getOwnPropertySymbols(datagrams).find((one) => one.description === 'state symbol') as symbol
    ]?.handle.fd;
    expect(await run(number ?? -1)).toContain('datagram socket');
    datagrams.close();
  });

  it('connects to its own sockets, where they are bound, linked and moved to, and asks them who they are', async () => {
    machine.protect('.envrc');
    const { stdout, stderr } = await machine.run(
      script(`
os.mkdir('d'); os.chdir('d')
s = listen('own')
print(dial('own'), dial(os.getcwd() + '/own'), dial('../d/./own'), s.getsockname())
c = socket.socket(socket.AF_UNIX); c.connect('own'); print(c.getpeername(), oct(os.stat('own').st_mode & 0o777)); c.close()
os.umask(0o077); s = listen(os.getcwd() + '/closed'); print(oct(os.stat('closed').st_mode & 0o777), s.getsockname() == os.getcwd() + '/closed')
os.symlink('own', 'link'); os.rename('own', 'moved'); print(dial('link'), dial('moved'), dial('/proc/self/cwd/moved'))
listen('/proc/self/cwd/by-proc'); print(dial('by-proc'))
listen('/tmp/own'); print(dial('/tmp/own'))
listen('\\0abstract'); print(dial('\\0abstract'), dial('\\0nobody'))
os.unlink('moved'); print(dial('moved')); open('file', 'w').close(); print(dial('file'), dial('nowhere'))
for at in ['closed', 'file', '../.envrc', '/etc/socket', 'nowhere/x']:
  try: listen(at); print(at, 'bound')
  except OSError as e: print(at, errno.errorcode[e.errno])
a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9))
try: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); print('datagrams')
except OSError as e: print(errno.errorcode[e.errno])`),
    );
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      'inside inside inside own',
      'own 0o755',
      '0o700 True',
      'ENOENT inside inside',
      'inside',
      'inside',
      'inside ECONNREFUSED',
      'ENOENT',
      'ECONNREFUSED ENOENT',
      'closed EADDRINUSE',
      'file EADDRINUSE',
      '../.envrc EACCES',
      '/etc/socket EACCES',
      'nowhere/x ENOENT',
      "b'pair'",
      'EACCES',
      '',
    ]);
    expect(existsSync(join(machine.project, '.envrc'))).toBe(false);
  });

  it('connects over its own network as outside: at once, later, never, and broken off', async () => {
    const { stdout, stderr } = await machine.run(
      script(`
import signal
t = socket.socket(); t.bind(('127.0.0.1', 0)); t.listen(1)
c = socket.create_connection(t.getsockname()); print(c.getpeername() == t.getsockname(), c.gettimeout(), os.get_blocking(c.fileno()) )
print(dial(('127.0.0.1', 1), family=socket.AF_INET))
n = socket.socket(); n.setblocking(False); print(errno.errorcode[n.connect_ex(t.getsockname())]); time.sleep(0.1); print(n.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), n.connect_ex(t.getsockname()))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(('127.0.0.1', 9)); print(u.getpeername())
# Nobody takes these: the third waits until there is room, or until it is broken off.
l = socket.socket(socket.AF_UNIX); l.bind('full'); l.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect('full')
second = socket.socket(socket.AF_UNIX); second.setblocking(False); print(errno.errorcode[second.connect_ex('full')])
third = socket.socket(socket.AF_UNIX); done = []
w = threading.Thread(target=lambda: (third.connect('full'), done.append(1))); w.start()
time.sleep(0.2); open('others-go-on', 'w').close(); print(done); l.accept(); w.join(5); print(done)
fourth = socket.socket(socket.AF_UNIX)
class Broken(Exception): pass
def broken(*_): raise Broken()
signal.signal(signal.SIGALRM, broken); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: fourth.connect('full'); print('connected')
except Broken: print('broken off')
for fd, size in [(999, 16), (0, 16), (fourth.fileno(), 1), (fourth.fileno(), 999)]:
  import ctypes
  libc = ctypes.CDLL(None, use_errno=True); libc.connect(fd, b'\\1\\0' + bytes(200), size); print(errno.errorcode[ctypes.get_errno()])`),
    );
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual([
      'True None True',
      'ECONNREFUSED',
      'EINPROGRESS',
      '0 0',
      "('127.0.0.1', 9)",
      'EAGAIN',
      '[]',
      '[1]',
      'broken off',
      'EBADF',
      'ENOTSOCK',
      'EINVAL',
      'EINVAL',
      '',
    ]);
  });
});
