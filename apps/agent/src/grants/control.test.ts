// The control socket against who must not be heard and what is no question.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processFacts } from '@nd7/kernel';
import fc from 'fast-check';
import { askAt } from '../recorder/client.js';
import { encodeRequest } from '../recorder/frames.js';
import { FIRST } from './author.js';
import { removeMade, TestBook } from './book.fixture.js';
import { CONTROL, Control } from './control.js';
import { FrameFault, readAllow, readDeny, readRevoke } from './control-frames.js';

let run: string;
let folder: string;
let test: TestBook;
let control: Control;
let refused: string[];
beforeEach(async () => {
  run = mkdtempSync(join(tmpdir(), 'nd7-control-'));
  folder = join(run, 'c-0123456789abcdef');
  mkdirSync(folder, { mode: 0o700 });
  test = new TestBook();
  refused = [];
  control = await Control.open({
    folder,
    book: test.book,
    living: { session: 'run-1', project: test.project, cwd: '/', command: ['x'], agent: null, started: '', pid: 1 },
    refused: (_by, detail) => Promise.resolve(void refused.push(detail)),
  });
});
afterEach(async () => {
  await control.close();
  rmSync(run, { recursive: true, force: true });
  removeMade();
});

const ask = async (op: string, payload: object | Buffer = {}) => {
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));
  const answer = await askAt({ folder, name: CONTROL }, op, { payload: bytes });
  return (
    answer && { exit: answer.exit, ...(JSON.parse(answer.stdout) as { error?: { code: string; message: string } }) }
  );
};
const allow = { wanted: [{ right: 'net', what: 'a.test' }], for: 'session', yes: false };

describe('the control socket', () => {
  it('is nobody else’s, and writes down who speaks', async () => {
    expect([statSync(folder).mode & 0o777, statSync(join(folder, CONTROL)).mode & 0o777]).toEqual([0o700, 0o600]);
    expect(await ask('allow', allow)).toMatchObject({
      exit: 0,
      grants: [{ id: 'g1', what: 'a.test:443', by: { pid: process.pid, uid: process.geteuid?.() } }],
    });
    const by = test.entries[0]?.data['by'] as { start: string; parent: { pid: number } };
    expect([by.start, by.parent.pid]).toEqual([processFacts(process.pid)?.start, process.ppid]);
  });

  it('asks back about what is risky, and does nothing meanwhile', async () => {
    const wide = { ...allow, wanted: [{ right: 'net', what: '*' }] };
    expect(await ask('allow', wide)).toMatchObject({ exit: 0, risks: [expect.stringContaining('every host')] });
    expect(test.log).toEqual([]);
    expect(await ask('allow', { ...wide, yes: true })).toMatchObject({ grants: [{ what: '*:443' }] });
  });

  it('refuses whoever stands below the first process of a session, of any session', async () => {
    const other = join(run, 'c-fedcba9876543210');
    mkdirSync(other);
    // This process stands below its parent: as if that were the first of another session.
    writeFileSync(join(other, FIRST), `${process.ppid} ${processFacts(process.ppid)?.start ?? ''}\n`);
    expect(await ask('allow', allow)).toMatchObject({ exit: 1, error: { code: 'inside' } });
    expect([refused, test.log]).toEqual([['whoever is inside a session cannot widen one'], []]);
    // The same pid at another time is another process.
    writeFileSync(join(other, FIRST), `${process.ppid} 1\n`);
    expect(await ask('allow', allow)).toMatchObject({ exit: 0 });
    rmSync(other, { recursive: true });
    control.admit(process.ppid);
    expect(await ask('grants')).toMatchObject({ exit: 1, error: { code: 'inside' } });
  });

  const speak = `
    import { connect } from 'node:net';
    const socket = connect(process.argv[1], () => socket.write(Buffer.from(process.argv[2], 'base64')));
    const parts = [];
    socket.on('data', (bytes) => parts.push(bytes)).on('error', (error) => parts.push(Buffer.from(error.code))).on('close', () => console.log(Buffer.concat(parts).toString('latin1')));`;
  const frame = encodeRequest('allow', {}, Buffer.from(JSON.stringify(allow))).toString('base64');
  const spoken = async (command: string, args: string[]): Promise<string> => {
    const child = spawn(command, [
      ...args,
      process.execPath,
      '--input-type=module',
      '-e',
      speak,
      '--',
      join(folder, CONTROL),
      frame,
    ]);
    let said = '';
    child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await new Promise((done) => child.once('close', done));
    return said;
  };
  const namespaces = process.geteuid?.() === 0 ? ['-p', '-f'] : ['-Ur', '-p', '-f'];
  const canUnshare = spawnSync('unshare', [...namespaces, 'true']).status === 0;

  it('refuses whoever stands below one by more processes than anybody looks at', async () => {
    const deep = join(run, 'deep.sh');
    writeFileSync(deep, 'n=$1; shift; [ $n = 0 ] || { sh "$0" $((n - 1)) "$@"; exit $?; }; "$@"; exit $?\n');
    expect(await spoken('sh', [deep, '20'])).toContain('"id":"g1"');
    const other = join(run, 'c-fedcba9876543210');
    mkdirSync(other);
    writeFileSync(join(other, FIRST), `${process.pid} ${processFacts(process.pid)?.start ?? ''}\n`);
    for (const depth of ['0', '20', '80']) expect(await spoken('sh', [deep, depth])).toContain('"inside"');
    rmSync(other, { recursive: true });
  });

  (canUnshare ? it : it.skip)('refuses who is in other namespaces, as those inside are', async () => {
    expect(await spoken('unshare', namespaces)).toContain('namespace');
    expect([refused.length, test.log]).toEqual([1, []]);
  });

  (process.geteuid?.() === 0 ? it : it.skip)('does not hear another user, whatever the modes are [root]', async () => {
    for (const path of [run, folder]) chmodSync(path, 0o755);
    chmodSync(join(folder, CONTROL), 0o777);
    const other = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
    const said = await spoken('setpriv', other);
    expect([said.includes('grants'), test.log]).toEqual([false, []]);
    // The same words of its own user are heard.
    expect(await spoken('env', [])).toContain('"id":"g1"');
  });

  it('survives every frame, and takes none that is not a question', async () => {
    const say = (bytes: Buffer): Promise<void> =>
      new Promise((done) => {
        const socket = connect(join(folder, CONTROL), () => socket.end(bytes));
        socket
          .resume()
          .on('error', () => undefined)
          .once('close', () => done());
      });
    const framed = fc
      .tuple(
        fc.constantFrom('allow', 'deny', 'revoke', 'rules', 'grants', 'living', 'x'),
        fc.oneof(fc.json(), fc.string()),
      )
      .map(([op, text]) => encodeRequest(op, {}, Buffer.from(text)));
    const bytes = fc.uint8Array({ maxLength: 64 }).map((some) => Buffer.from(some));
    const cut = fc.tuple(framed, fc.nat(40)).map(([whole, n]) => whole.subarray(0, n));
    await fc.assert(fc.asyncProperty(fc.oneof(framed, bytes, cut), say), { numRuns: 150 });
    const huge = encodeRequest('allow', {}, Buffer.alloc(300 << 10, 0x20));
    await say(huge);
    expect(test.log.filter((line) => !line.startsWith('recheck'))).toEqual([]);
    expect(await ask('living')).toMatchObject({ session: 'run-1' });
  }, 60_000);
});

describe('the questions of a control socket', () => {
  it.each<[string, (payload: Buffer) => unknown]>([
    ['allow', readAllow],
    ['deny', readDeny],
    ['revoke', readRevoke],
  ])('%s: what is not read is refused as that, never otherwise', (_op, read) => {
    const members = fc.record(
      {
        right: fc.constantFrom('read', 'write', 'net', 'socket', 'exec'),
        what: fc.string(),
        below: fc.anything(),
        raw: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    const value = fc.oneof(
      fc.anything(),
      fc.record(
        {
          wanted: fc.oneof(members, fc.array(members)),
          for: fc.string(),
          yes: fc.boolean(),
          ids: fc.array(fc.string()),
          all: fc.boolean(),
          request: fc.string(),
        },
        { requiredKeys: [] },
      ),
    );
    fc.assert(
      fc.property(value, (one) => {
        try {
          read(Buffer.from(JSON.stringify(one) ?? ''));
        } catch (error) {
          const isKnown = error instanceof FrameFault || (error as Error).name === 'PolicyError';
          if (!isKnown) throw error;
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each<[string, object]>([
    ['a relative path', { ...allow, wanted: [{ right: 'read', what: 'x' }] }],
    ['a path that climbs', { ...allow, wanted: [{ right: 'read', what: '/a/../b' }] }],
    ['a path with NUL', { ...allow, wanted: [{ right: 'read', what: '/a\0b' }] }],
    ['half a character', { ...allow, wanted: [{ right: 'read', what: '/a\ud800' }] }],
    ['a host with a path', { ...allow, wanted: [{ right: 'net', what: 'a.test/x' }] }],
    ['an address in another spelling', { ...allow, wanted: [{ right: 'net', what: '0x7f.1' }] }],
    ['this machine without a port', { ...allow, wanted: [{ right: 'net', what: 'localhost' }] }],
    ['nothing', { ...allow, wanted: [] }],
    ['fifty-one things', { ...allow, wanted: Array(51).fill(allow.wanted[0]) }],
    ['a member that nobody knows', { ...allow, always: true }],
    ['a time that is none', { ...allow, for: 'ever' }],
    ['below of a host', { ...allow, wanted: [{ right: 'net', what: 'a.test', below: true }] }],
  ])('%s is refused', async (_what, question) => {
    expect(await ask('allow', question)).toMatchObject({ exit: 2, error: {} });
    expect(test.log).toEqual([]);
  });
});
