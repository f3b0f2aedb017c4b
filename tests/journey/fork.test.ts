// A session whose log was rewritten, cut back or damaged behind the recorder's back, with a real recorder that goes on recording it.
import {
  closeSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { rewriteChain } from '../../infra/dev/dist/rewrite.js';
import { Desk, type Shipped } from './desk.fixture.js';
import { RealVault, until } from './real-vault.fixture.js';
import { Wayside } from './wayside.fixture.js';

let vault: RealVault;
let reader: string;
beforeAll(async () => {
  vault = await RealVault.start();
  reader = await vault.reader();
});
afterAll(async () => {
  await vault.stop();
});

let desk: Desk;
beforeEach(async () => {
  desk = new Desk();
  await desk.enrol(vault);
});
afterEach(async () => {
  await desk.remove();
});

/** Records and ships a session of two calls, and stops the recorder: what comes then is done behind its back. */
async function recorded(session: string): Promise<number> {
  await desk.say(session, 'SessionStart', { source: 'startup' });
  for (let i = 0; i < 2; i++) await desk.call(session);
  await desk.untilShipped(session);
  await desk.stopRecorder();
  await desk.nd7(['ship', session]);
  return desk.receipted(session);
}

const rewrite = (session: string): void =>
  void rewriteChain(desk.home, session, (_, rest) => rest.replace('"command":"make"', '"command":"true"'));
const forget = (session: string): void => {
  rmSync(join(desk.home, 'sessions', session, 'receipts'), { recursive: true, force: true });
  rmSync(join(desk.home, 'outbox', session), { recursive: true, force: true });
};
const alarms = (session: string) => desk.entries(session).filter(({ kind }) => kind === 'alarm');
const incidents = async (session: string) => {
  const answer = await fetch(`${vault.url}/v1/incidents`, { headers: { authorization: `Bearer ${reader}` } });
  const { incidents: all } = (await answer.json()) as { incidents: { kind: string; session: string }[] };
  return all.filter((one) => one.session === session).map(({ kind }) => kind);
};

describe.each([
  ['its receipts kept', false],
  ['its receipts thrown away', true],
])('a session that was rewritten, %s', (_, isForgetful) => {
  it('goes on as a new chain that is shipped, tells of it once, and holds no other session up', async () => {
    const session = isForgetful ? 'forked-forgotten' : 'forked';
    const before = await recorded(session);
    rewrite(session);
    if (isForgetful) forget(session);

    await desk.call(session);
    const next = `${session}.r1`;
    await until('it goes on as a new chain', () => desk.sessions().includes(next));
    const third = await desk.call(session);
    await desk.untilShipped(next);
    const [start] = desk.entries(next);
    expect(start?.data).toMatchObject({
      continues: { session, entries: isForgetful ? 0 : before },
      why: 'forked',
    });
    expect(alarms(next)).toEqual([
      expect.objectContaining({ data: expect.objectContaining({ reason: 'fork', session }) as unknown }),
    ]);
    expect(desk.entries(next).some(({ data }) => data['tool_use_id'] === third)).toBe(true);
    expect(desk.entries(session).some(({ data }) => data['tool_use_id'] === third)).toBe(false);
    expect(await incidents(session)).toContain('fork');

    // Later sessions are none of its business.
    await desk.call('later');
    await desk.untilShipped('later');

    expect(await desk.shipping(session)).toMatchObject({ state: 'failed', code: 'fork' });
    const status = await desk.nd7(['status']);
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(new RegExp(`${session}\\b.*fork`, 's'));

    // Asked again, with the recorder and without: refused again, loudly, and told in the log no second time.
    for (const isRunning of [true, false]) {
      if (!isRunning) await desk.stopRecorder();
      const ship = await desk.json('ship', session);
      expect(ship.exit).toBe(1);
      const [outcome] = ship['sessions'] as Shipped[];
      expect(outcome).toMatchObject({ session, state: 'failed', code: 'fork' });
      expect(outcome?.continued_as).toBe(next);
      expect((await desk.nd7(['ship', 'later', next])).code).toBe(0);
    }
    // The next recorder takes up what is unshipped: the forked session is, and stays so.
    await desk.call(session);
    await desk.untilShipped(next);
    await until('it has tried again', async () => (await desk.shipping(session))?.state === 'failed');
    await desk.call(session);
    await desk.untilShipped(next);
    expect(alarms(next).filter(({ data }) => data['reason'] === 'fork')).toHaveLength(1);
    expect(desk.sessions()).toEqual([session, next, 'later'].sort());
    expect((await incidents(session)).filter((kind) => kind === 'fork')).toHaveLength(1);
    expect((await desk.nd7(['verify', next, '--receipts'])).code).toBe(0);
    await vault.checkAll();
  });
});

it('a machine restored from an older image: the vault holds more, so it goes on as a new chain; the old one is stated closed', async () => {
  const session = 'restored';
  const before = await recorded(session);
  const image = join(desk.home, '..', 'image');
  cpSync(desk.home, image, { recursive: true });
  for (let i = 0; i < 4; i++) await desk.call(session);
  await desk.untilShipped(session);
  const held = desk.receipted(session);
  await desk.stopRecorder();
  rmSync(desk.home, { recursive: true });
  renameSync(image, desk.home);

  await desk.say(session, 'UserPromptSubmit', { prompt: 'go on' });
  const next = `${session}.r1`;
  await until('it goes on as a new chain', () => desk.sessions().includes(next));
  const last = await desk.call(session);
  await desk.untilShipped(next);
  expect(desk.entries(next)[0]?.data).toMatchObject({ continues: { session, entries: before }, why: 'shortened' });
  expect(alarms(next).map(({ data }) => data['reason'])).toEqual(['log-behind']);
  expect(desk.entries(next).some(({ data }) => data['tool_use_id'] === last)).toBe(true);
  await until('the old one is closed', async () => (await vault.leavesOf(session)).includes(`close ${before}`));
  const ship = await desk.json('ship', session);
  expect(ship).toMatchObject({ exit: 1, sessions: [{ state: 'failed', code: 'log-behind', continued_as: next }] });
  expect((ship['sessions'] as Shipped[])[0]?.problem).toContain(`${String(held)} entries`);
  expect((await desk.nd7(['ship', next])).code).toBe(0);
});

it('a machine and its copy, both at work: what the slower one signed disagrees (409), and it goes on as a new chain', async () => {
  const session = 'copied';
  const way = await Wayside.start(vault.url);
  const copy = new Desk();
  try {
    const before = await recorded(session);
    cpSync(desk.home, copy.home, { recursive: true });
    const pinned = join(copy.home, 'vault.json');
    writeFileSync(pinned, readFileSync(pinned, 'utf8').replace(vault.url, way.url));
    // The copy has asked how far the vault is and has its cut on the way; then the first machine is faster, with a segment that names no count of the copy's.
    let isHeld = false;
    let release = (): void => undefined;
    const faster = new Promise<undefined>((resolve) => (release = () => resolve(undefined)));
    way.before = ({ method }) => {
      if (method !== 'PUT') return undefined;
      isHeld = true;
      return faster;
    };
    await copy.say(session, 'UserPromptSubmit', { prompt: 'the copy goes on' });
    await until('the cut is on its way', () => isHeld);
    for (let i = 0; i < 8; i++) await desk.sayAlone(session);
    expect(await desk.json('ship', session)).toMatchObject({ exit: 0 });
    release();

    const next = `${session}.r1`;
    await until('it goes on as a new chain', () => copy.sessions().includes(next));
    expect(way.puts[0]).toMatchObject({ status: 409 });
    expect(way.puts[0]?.answer.toString()).toContain('"code":"disagrees"');
    const last = await copy.call(session);
    await copy.untilShipped(next);
    expect(copy.entries(next)[0]?.data).toMatchObject({ continues: { session, entries: before }, why: 'forked' });
    const told = copy.entries(next).filter(({ kind }) => kind === 'alarm');
    expect(told.map(({ data }) => data['reason'])).toEqual(['disagrees']);
    expect(copy.entries(next).some(({ data }) => data['tool_use_id'] === last)).toBe(true);
    expect(await incidents(session)).toContain('disagrees');
    expect(await incidents(session)).not.toContain('fork');
    expect(await copy.json('ship', session)).toMatchObject({
      exit: 1,
      sessions: [{ session, state: 'failed', continued_as: next }],
    });
    expect((await copy.nd7(['ship', next])).code).toBe(0);
    expect((await copy.nd7(['verify', next, '--receipts'])).code).toBe(0);
    // The first machine is not in the wrong, and goes on.
    await desk.call(session);
    await desk.untilShipped(session);
    expect(desk.sessions()).toEqual([session]);
  } finally {
    await copy.remove();
    await way.down();
  }
});

it('a session key that is gone: it goes on as a new chain, and the old one is stated closed', async () => {
  const session = 'key-lost';
  const before = await recorded(session);
  for (const name of readdirSync(join(desk.home, 'keys/sessions', session)))
    rmSync(join(desk.home, 'keys/sessions', session, name));
  const next = `${session}.r1`;
  await desk.call(session);
  await desk.untilShipped(next);
  expect(desk.entries(next)[0]?.data).toMatchObject({ continues: { session, entries: before }, why: 'key-lost' });
  await until('the old one is closed', async () => (await vault.leavesOf(session)).includes(`close ${before}`));
  expect((await desk.nd7(['ship'])).code).toBe(0);
});

it('a byte changed in what waits for the vault: nothing is signed over it, the session goes on as a new chain', async () => {
  const session = 'damaged';
  const before = await recorded(session);
  await vault.kill();
  await desk.call(session);
  // In place, while the recorder has it open: a recorder that opens a log anew finds this by itself.
  const log = join(desk.home, 'sessions', session, 'log.jsonl');
  const fd = openSync(log, 'r+');
  writeSync(fd, 'c', readFileSync(log, 'latin1').lastIndexOf('"command":"make"') + '"command":"'.length);
  closeSync(fd);
  await desk.call(session);
  await vault.serve();
  const ship = await desk.json('ship', session);
  expect(ship).toMatchObject({ exit: 1, sessions: [{ state: 'failed', code: 'log-broken' }] });
  const next = `${session}.r1`;
  await until('it goes on as a new chain', () => desk.sessions().includes(next));
  const last = await desk.call(session);
  await desk.untilShipped(next);
  expect(desk.entries(next)[0]?.data).toMatchObject({ continues: { session, entries: before }, why: 'broken' });
  expect(alarms(next).map(({ data }) => data['reason'])).toEqual(['log-broken']);
  expect(desk.entries(next).some(({ data }) => data['tool_use_id'] === last)).toBe(true);
  await until('the old one is closed', async () => (await vault.leavesOf(session)).includes(`close ${before}`));
  expect(await desk.json('ship', session)).toMatchObject({
    exit: 1,
    sessions: [{ code: 'log-broken', continued_as: next }],
  });
});
