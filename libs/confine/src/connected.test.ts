// Who connects to what the front serves, as the supervisor tells it: by every way to connect, of the very process, and nothing of what it does not serve.
import { createServer, Server, type AddressInfo, type Socket } from 'node:net';
import type { Connected } from './observe.js';
import { buildLaunchers, Machine, until, USERS } from './session.fixture.js';

beforeAll(buildLaunchers, 120_000);

const CLIENT = `
import errno, os, select, socket, struct, sys, threading
PORT = int(sys.argv[1])
def way_plain():
  s = socket.socket(); s.connect(('127.0.0.1', PORT)); return s
def way_nonblocking():
  s = socket.socket(); s.setblocking(False)
  s.connect_ex(('127.0.0.1', PORT)); select.select([], [s], [], 5)
  s.connect_ex(('127.0.0.1', PORT)); s.connect_ex(('127.0.0.1', PORT)); return s
def way_mapped():
  s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', PORT)); return s
def way_any():
  s = socket.socket(); s.connect(('0.0.0.0', PORT)); return s
def way_bound():
  s = socket.socket(); s.bind(('127.0.0.1', 0)); s.connect(('127.0.0.1', PORT)); return s
def way_bound_to_all():
  s = socket.socket(); s.bind(('', 0)); s.connect(('127.0.0.1', PORT)); return s
def way_thread():
  all = []
  t = threading.Thread(target=lambda: all.append(way_plain())); t.start(); t.join(); return all[0]
def way_child():
  here, there = socket.socketpair()
  if os.fork() == 0:
    s = way_plain()
    socket.send_fds(there, [b'x'], [s.fileno()])
    os._exit(0)
  _, fds, _, _ = socket.recv_fds(here, 1, 1)
  os.wait()
  return socket.socket(fileno=fds[0])
for name, way in list(globals().items()):
  if name.startswith('way_'):
    s = way()
    print(name, s.getsockname()[1], flush=True)
    s.sendall(b'.')
# Neither what nobody serves nor the session's own.
s = socket.socket()
print('refused', s.connect_ex(('127.0.0.1', 9)), flush=True)
own = socket.socket(); own.bind(('127.0.0.1', 0)); own.listen()
socket.create_connection(own.getsockname())
# Deeper than anybody stands.
def deep(n):
  if n == 0:
    print('deep', way_plain().getsockname()[1], flush=True)
    return
  if os.fork() == 0:
    deep(n - 1)
    os._exit(0)
  os.wait()
deep(260)
print('pid', os.getpid(), flush=True)
`;

describe.each(USERS.flatMap(([who, user]) => (['T1', 'T2'] as const).map((tier) => [tier, who, user] as const)))(
  '%s: who connects, as %s',
  (tier, _who, user) => {
    let tidy = (): Promise<void> => Promise.resolve();
    afterEach(() => tidy());
    it.each(['nd7-launch', 'nd7-launch-sanitized'] as const)('is told of each connection once (%s)', async (build) => {
      const machine = new Machine(user, build);
      machine.tier = tier;
      machine.file('project/client.py', CLIENT);
      const heard: Connected[] = [];
      const accepted: Socket[] = [];
      const hear = (socket: Socket): void => {
        accepted.push(socket.on('error', () => undefined).resume());
      };
      // Without a network of the session's own the front listens on this machine's.
      const outside = createServer(hear);
      let port = 3128;
      if (tier === 'T2') {
        await new Promise<void>((done) => outside.listen(0, '127.0.0.1', done));
        port = (outside.address() as AddressInfo).port;
      }
      const session = machine.start(
        ['python3', 'client.py', String(port)],
        { listeners: [{ kind: 'stream', address: '127.0.0.1', port }] },
        {
          front: {
            judge: (question) => machine.judge(question),
            heard: () => undefined,
            connected: (one) => heard.push(one),
          },
          doors: { opened: (socket) => socket.destroy(), announced: () => undefined },
        },
      );
      let said = '';
      for (const stream of [session.process.stdout, session.process.stderr])
        stream?.on('data', (bytes: Buffer) => (said += bytes.toString()));
      void session.listeners.then((opened) => {
        for (const server of opened) if (server instanceof Server) server.on('connection', hear);
      });
      tidy = async () => {
        session.prepared.clean();
        outside.close();
        for (const opened of await session.listeners) opened.close();
        for (const socket of accepted) socket.destroy();
        machine.close();
      };
      const ended = await session.ended;
      expect([ended.code, said]).toEqual([0, expect.stringContaining('way_child')]);
      await until('all are accepted', () => accepted.length === 9);
      const lines = said
        .trim()
        .split('\n')
        .map((line) => line.split(' ') as [string, string]);
      const ways = lines.filter(([name]) => name.startsWith('way_'));
      expect(ways).toHaveLength(8);
      // The end that was told is the one that the front sees; of a port that is taken on all addresses (which are one in T2) what was told before is recalled first.
      const real = heard.filter(({ from }) => from.address !== '0.0.0.0');
      expect(heard.length - real.length).toBe(tier === 'T1' ? 1 : 0);
      expect(real.map(({ from }) => from.port)).toEqual(
        [...ways, ...lines.filter(([name]) => name === 'deep')].map(([, at]) => Number(at)),
      );
      for (const { from, to, program } of real)
        expect([from.address, to, program]).toEqual(['127.0.0.1', { address: '127.0.0.1', port }, 'python3']);
      const pids = real.map(({ line }) => line[0]?.pid);
      const parent = pids[0];
      // All are of the one process, the thread's too, and the last one of its child, whoever has it now.
      expect(new Set(pids.slice(0, 7))).toEqual(new Set([parent]));
      expect(real[7]?.line.slice(1)).toEqual(real[0]?.line);
      expect(real[7]?.line[0]?.pid).not.toBe(parent);
      expect(real[8]?.line).toEqual([]);
    });
  },
);
