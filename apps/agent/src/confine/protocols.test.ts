// Ways out of a session that are none, tried one by one by a program inside.
import { removeThrowAways } from '../testing/recorder.fixture.js';
import { TestSession } from './session.fixture.js';

let session: TestSession;
beforeEach(() => {
  session = new TestSession({ network: { allow: ['api.example.com'] } });
});
afterEach(() => {
  session.close();
  removeThrowAways();
});

/** Prints how each attempt ended: the name of the error, or what came. */
const ATTEMPTS = `
import errno, os, socket as s
def tried(name, attempt):
    try: print(name, attempt() or 'done')
    except OSError as e: print(name, errno.errorcode.get(e.errno, e.errno))
def opened(*numbers):
    made = s.socket(*numbers); made.settimeout(3); return made
def connected(sock, to):
    sock.connect(to)
tried('tcp', lambda: connected(opened(s.AF_INET, s.SOCK_STREAM), ('93.184.216.34', 443)))
tried('tcp6', lambda: connected(opened(s.AF_INET6, s.SOCK_STREAM), ('2606:2800:220:1::1', 443)))
tried('mptcp', lambda: opened(s.AF_INET, s.SOCK_STREAM, 262) and None)
tried('sctp', lambda: opened(s.AF_INET, s.SOCK_STREAM, 132) and None)
tried('fast-open', lambda: opened(s.AF_INET, s.SOCK_STREAM).sendto(b'x', 0x20000000, ('93.184.216.34', 443)))
def fast_open_connect():
    made = opened(s.AF_INET, s.SOCK_STREAM); made.setsockopt(6, 30, 1); made.connect(('93.184.216.34', 443)); made.send(b'x')
tried('fast-open-connect', fast_open_connect)
tried('udp', lambda: opened(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('93.184.216.34', 53)))
tried('udp6', lambda: opened(s.AF_INET6, s.SOCK_DGRAM).sendto(b'x', ('2001:4860:4860::8888', 53)))
tried('raw', lambda: opened(s.AF_INET, s.SOCK_RAW, 1) and None)
tried('ping', lambda: opened(s.AF_INET, s.SOCK_DGRAM, 1) and None)
tried('packet', lambda: opened(17, s.SOCK_RAW, 0) and None)
tried('netlink', lambda: opened(16, s.SOCK_RAW, 15) and None)
tried('netfilter', lambda: opened(16, s.SOCK_RAW, 12) and None)
tried('vsock', lambda: opened(40, s.SOCK_STREAM, 0) and None)
tried('bluetooth', lambda: opened(31, s.SOCK_RAW, 1) and None)
tried('alg', lambda: opened(38, s.SOCK_SEQPACKET, 0) and None)
tried('xdp', lambda: opened(44, s.SOCK_RAW, 0) and None)
tried('metadata', lambda: connected(opened(s.AF_INET, s.SOCK_STREAM), ('169.254.169.254', 80)))
tried('private', lambda: connected(opened(s.AF_INET, s.SOCK_STREAM), ('10.0.0.1', 80)))
tried('device', lambda: opened(s.AF_INET, s.SOCK_STREAM).setsockopt(s.SOL_SOCKET, s.SO_BINDTODEVICE, b'eth0'))
tried('listen-53', lambda: opened(s.AF_INET, s.SOCK_DGRAM).bind(('127.0.0.1', 53)))
tried('listen-443', lambda: opened(s.AF_INET, s.SOCK_STREAM).bind(('198.18.0.1', 443)))
def shared():
    made = opened(s.AF_INET, s.SOCK_STREAM); made.setsockopt(s.SOL_SOCKET, s.SO_REUSEPORT, 1); made.bind(('127.0.0.1', 3128))
tried('share-3128', shared)
`;

it('lead nowhere: each is refused by the kernel, and nothing is looked up or recorded as let out', async () => {
  const { stdout, stderr } = await session.run(['python3', '-c', ATTEMPTS]);
  expect(stderr).toBe('');
  const ended = Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
  const unreachable = expect.stringMatching(/^(ENETUNREACH|EACCES|EADDRNOTAVAIL)$/) as string;
  const refused = expect.stringMatching(
    /^(EACCES|EPERM|EAFNOSUPPORT|EPROTONOSUPPORT|EOPNOTSUPP|ENOTSUP|ENODEV)$/,
  ) as string;
  for (const name of ['tcp', 'tcp6', 'udp', 'udp6', 'fast-open-connect', 'metadata', 'private'])
    expect([name, ended[name]]).toEqual([name, unreachable]);
  for (const name of [
    'mptcp',
    'sctp',
    'fast-open',
    'raw',
    'ping',
    'packet',
    'netlink',
    'netfilter',
    'vsock',
    'bluetooth',
    'alg',
    'xdp',
    'device',
  ])
    expect([name, ended[name]]).toEqual([name, refused]);
  for (const name of ['listen-53', 'listen-443', 'share-3128'])
    expect([name, ended[name]]).toEqual([name, expect.stringMatching(/^(EACCES|EADDRINUSE)$/) as string]);
  expect([session.decisions, session.lookedUp]).toEqual([[], []]);
});

it('leave the session working after more connections than one session may have, from inside', async () => {
  const script = `
    const net = require('net');
    const open = (port, host) => new Promise((done) => { const s = net.connect(port, host); s.on('error', () => done()).on('connect', () => done(s)); });
    (async () => {
      for (let wave = 0; wave < 5; wave++) {
        const all = await Promise.all(Array.from({ length: 1500 }, (_, i) => open(i % 2 ? 3128 : 443, i % 2 ? '127.0.0.1' : '198.18.9.9')));
        for (const s of all) if (s) s.destroy();
      }
      require('dns').lookup('api.example.com', (e, a) => console.log(e ? e.code : a));
    })();`;
  const { code, stdout } = await session.run([process.execPath, '-e', script]);
  expect([code, stdout]).toEqual([0, '198.18.0.1\n']);
});
