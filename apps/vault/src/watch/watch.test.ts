import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { formatTime } from '@nd7/entry';
import { checkReceiptItself } from '@nd7/receipt';
import { verifySignatures } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { IncidentList, type Incident } from '@nd7/vault-api';
import { revokeMachine } from '../cli/people.js';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let key: VerifierKey;
let reader: { authorization: string };
let machine: TestMachine;
let n = 0;
/** The clock of the vault and of the machines, ahead of this process's, in milliseconds. It only moves forward. */
let ahead = 0;

beforeAll(async () => {
  world = await TestWorld.make({
    clock: { now: () => Date.now() + ahead },
    // The watch looks when it is told to; time may jump by hours between two looks.
    env: { ND7_VAULT_WATCH_EVERY: '3600', ND7_VAULT_AWAY_LIMIT: '86400' },
  });
  key = parseVkey((await world.team('acme')).vkey) as VerifierKey;
  await world.replica();
  reader = { authorization: `Bearer ${(await world.reader('acme')).token}` };
}, 60_000);

afterAll(() => world.close());

beforeEach(async () => {
  machine = await world.machine('acme', `box-${String((n += 1))}`);
  machine.ahead = ahead;
  await look();
});

const look = async (): Promise<void> => {
  await world.replicas[0]?.look();
};
/** Time goes by for everybody; the watch looks every two hours at least, as one does that is not down. */
async function pass(minutes: number): Promise<void> {
  for (let left = minutes; left > 0; left -= 120) {
    ahead += Math.min(left, 120) * 60_000;
    await look();
  }
  machine.ahead = ahead;
}

async function incidents(of: TestMachine = machine): Promise<Incident[]> {
  const { json } = await of.fetch('GET', '/v1/incidents', { headers: reader });
  return IncidentList.parse(json).incidents.filter((one) => one.machine === of.key.publicKey);
}
/** The kind of each, and by what it ended, in the order they were raised; of one look by their names. */
const kinds = async (): Promise<string[]> =>
  (await incidents())
    .sort((a, b) => (a.at + a.kind < b.at + b.kind ? -1 : 1))
    .map(({ kind, over }) => (over === undefined ? kind : `${kind} ${over.why}`));

/** A session that the vault holds up to its fourth entry. */
async function stored(): Promise<TestSession> {
  const session = new TestSession(machine.key, `w-${String((n += 1))}`).start().seal().more(1);
  expect((await machine.ship(session.id, session.cut(0))).status).toBeLessThan(300);
  return session;
}
const end = (session: TestSession): Promise<unknown> =>
  machine.close(session.id, session.count, session.heads.at(-1) as string);

describe('a machine', () => {
  it('that promised to be heard and is not, is quiet once, until it is heard', async () => {
    await machine.beat();
    await pass(2);
    expect(await kinds()).toEqual([]);
    await pass(2);
    await pass(60);
    expect(await incidents()).toMatchObject([{ kind: 'machine-quiet', state: 'open', seen: { interval: 60 } }]);
    await machine.beat();
    await look();
    expect(await kinds()).toEqual(['machine-quiet heard']);
    await pass(4);
    expect(await kinds()).toEqual(['machine-quiet heard', 'machine-quiet']);
  });

  it('is as quiet as its own interval says', async () => {
    await machine.beat({ interval: 3600 });
    await pass(170);
    expect(await kinds()).toEqual([]);
    await pass(20);
    expect(await kinds()).toEqual(['machine-quiet']);
  });

  it('that ships is heard', async () => {
    await machine.beat();
    await pass(2);
    const session = await stored();
    await end(session);
    await pass(2);
    expect(await kinds()).toEqual([]);
    await pass(2);
    expect(await kinds()).toEqual(['machine-quiet']);
    await stored();
    await look();
    expect(await kinds()).toEqual(['machine-quiet heard']);
  });

  it.each(['idle', 'stopped', 'uninstalled'])('that said it goes away (%s) is not quiet', async (reason) => {
    await machine.beat();
    await machine.beat({ away: { reason } });
    await pass(60 * 48);
    expect(await kinds()).toEqual([]);
    await machine.beat(); // and is back
    await pass(4);
    expect(await kinds()).toEqual(['machine-quiet']);
  });

  it('that said it sleeps is quiet when it does not wake', async () => {
    await machine.beat({ away: { reason: 'sleep' } });
    await pass(60 * 23);
    expect(await kinds()).toEqual([]);
    await pass(120);
    expect(await incidents()).toMatchObject([{ kind: 'machine-quiet', seen: { away: 'sleep' } }]);
  });

  it('that says afterwards that it slept has explained it: that is its word', async () => {
    await machine.beat();
    await pass(30);
    const [from, to] = [25, 1].map((ago) => formatTime(Date.now() + ahead - ago * 60_000));
    await machine.beat({ slept: { from, to } });
    await machine.beat();
    await look();
    expect(await kinds()).toEqual(['machine-quiet slept']);
  });

  it('that never promised anything is never quiet', async () => {
    await machine.beat({ interval: undefined });
    const silent = await world.machine('acme', 'never heard');
    await pass(60 * 24);
    expect([await kinds(), await incidents(silent)]).toEqual([[], []]);
  });

  it('that is revoked is not quiet any more', async () => {
    await machine.beat();
    await pass(4);
    await revokeMachine(world.io, 'acme', machine.key.publicKey);
    await look();
    await pass(60);
    expect(await kinds()).toEqual(['machine-quiet revoked']);
  });

  it('has its time anew after the vault itself could not be heard', async () => {
    await machine.beat();
    ahead += 5 * 3_600_000; // no look for longer than three of its intervals
    await look();
    expect(await kinds()).toEqual([]);
    await pass(4);
    expect(await kinds()).toEqual(['machine-quiet']);
  });
});

describe('a session without a close', () => {
  it('that its machine names is open for as long as the machine is there', async () => {
    const session = await stored();
    for (let i = 0; i < 6; i += 1) {
      await machine.beat({ interval: 1800, sessions: [session.named()] });
      await pass(30);
    }
    expect(await kinds()).toEqual([]);
  });

  it('of a machine that stopped is lost after the grace, in the log too, and goes on where it does', async () => {
    const session = await stored();
    await machine.beat({ sessions: [session.named()], away: { reason: 'stopped' } });
    await pass(55);
    expect(await kinds()).toEqual([]);
    await pass(10);
    await pass(60);
    expect(await incidents()).toMatchObject([
      { kind: 'session-unclosed', session: session.id, count: 4, seen: { away: 'stopped', held: 4 } },
    ]);
    const path = `/v1/machines/${machine.key.publicKey}/sessions/${session.id}`;
    const state = async (): Promise<unknown[]> => {
      const { json } = await machine.fetch('GET', path, { headers: reader });
      return [json['state'], json['close_reason']];
    };
    expect(await state()).toEqual(['closed', 'lost']);
    let receipt = await machine.fetch('GET', `${path}/close/4/receipt`, { headers: reader });
    while (receipt.status === 404) receipt = await machine.fetch('GET', `${path}/close/4/receipt`, { headers: reader });
    const verdict = await checkReceiptItself(receipt.text, { keys: [key] }, verifySignatures, { anyType: true });
    expect(verdict.ok && verdict.receipt.statement).toMatchObject({ type: 'close', reason: 'lost', entries: 4 });
    session.more(2);
    await machine.ship(session.id, session.cut(4));
    await look();
    expect([await kinds(), await state()]).toEqual([['session-unclosed resumed'], ['open', undefined]]);
  });

  it('of a machine that fell silent is an incident beside the machine’s', async () => {
    const session = await stored();
    await machine.beat({ sessions: [session.named()] });
    await pass(70);
    expect(await kinds()).toEqual(['machine-quiet', 'session-unclosed']);
    await machine.beat({ sessions: [session.named()] });
    await look();
    expect(await kinds()).toEqual(['machine-quiet heard', 'session-unclosed listed']);
    const path = `/v1/machines/${machine.key.publicKey}/sessions/${session.id}`;
    const state = async (): Promise<unknown> => (await machine.fetch('GET', path, { headers: reader })).json['state'];
    expect(await state()).toBe('open');
    await machine.beat({ away: { reason: 'idle' } });
    await pass(70);
    expect(await kinds()).toEqual(['machine-quiet heard', 'session-unclosed listed', 'session-unclosed']);
    expect(await state()).toBe('closed');
    await end(session);
    await look();
    expect((await kinds()).at(-1)).toBe('session-unclosed closed');
    const leaves =
      await world.owner`select from nd7.session_statement where session = ${session.id} and reason = 'lost'`;
    expect(leaves).toHaveLength(1); // one a count
  });

  it('that its machine does not name any more is lost, unless the list is so long that it may be cut off', async () => {
    const session = await stored();
    const others = Array.from({ length: 1000 }, (_, i) => ({
      session: `o${String(i)}`,
      entries: 0,
      head: '0'.repeat(64),
    }));
    for (let i = 0; i < 2; i += 1) {
      await machine.beat({ interval: 1200, sessions: others });
      await pass(35);
    }
    expect(await kinds()).toEqual([]);
    await machine.beat({ interval: 1200, sessions: others.slice(1) });
    await pass(1);
    expect(await incidents()).toMatchObject([{ kind: 'session-unclosed', session: session.id }]);
  });

  it('of a sleeping machine sleeps with it', async () => {
    const session = await stored();
    await machine.beat({ sessions: [session.named()], away: { reason: 'sleep' } });
    await pass(60 * 20);
    expect(await kinds()).toEqual([]);
  });

  it('of a machine without heartbeats gets as long as a sleeping one', async () => {
    await stored();
    await pass(60 * 23);
    expect(await kinds()).toEqual([]);
    await pass(120);
    expect(await kinds()).toEqual(['session-unclosed']);
  });

  it('that was closed, or forked, is none', async () => {
    await end(await stored());
    const forked = await stored();
    const branch = forked.branch(2).more(1, { data: '{"other":true}' });
    expect((await machine.ship(forked.id, branch.cut(2))).status).toBe(409);
    await machine.beat({ away: { reason: 'stopped' } });
    await pass(70);
    expect((await kinds()).filter((kind) => kind.startsWith('session'))).toEqual([]);
  });
});

describe('entries that were named and do not come', () => {
  it('from a machine that is there make the session quiet, until they come', async () => {
    const session = await stored();
    session.more(3);
    const beat = (): Promise<unknown> => machine.beat({ sessions: [session.named()] });
    for (let i = 0; i < 4; i += 1) {
      await beat();
      await pass(1);
    }
    expect(await kinds()).toEqual([]);
    for (let i = 0; i < 3; i += 1) {
      await beat();
      await pass(1);
    }
    expect(await incidents()).toMatchObject([
      { kind: 'session-quiet', session: session.id, count: 4, seen: { entries: 8, held: 4 } },
    ]);
    await machine.ship(session.id, session.cut(4));
    await look();
    expect(await kinds()).toEqual(['session-quiet shipped']);
  });

  it('are a quiet session too where none ever came', async () => {
    const session = new TestSession(machine.key, 'never-shipped').start().seal();
    for (let i = 0; i < 7; i += 1) {
      await machine.beat({ sessions: [session.named()] });
      await pass(1);
    }
    expect(await incidents()).toMatchObject([{ kind: 'session-quiet', session: 'never-shipped', count: 0 }]);
  });

  it('are waited for when the machine has just woken', async () => {
    const session = await stored();
    session.more(3);
    const said = { sessions: [session.named()] };
    await machine.beat({ ...said, away: { reason: 'sleep' } });
    await pass(60);
    await machine.beat(said);
    await look();
    expect(await kinds()).toEqual([]);
  });

  it('and are not named any more are a tail that shrank, however long it was away', async () => {
    const session = await stored();
    await end(session);
    session.more(3); // went on, said so, and was cut back
    await machine.beat({ sessions: [session.named()], away: { reason: 'stopped' } });
    await pass(60 * 5);
    await machine.beat();
    await look();
    expect(await incidents()).toMatchObject([
      { kind: 'tail-shrank', session: session.id, count: 4, state: 'open', seen: { was: 8, held: 4 } },
    ]);
    await machine.ship(session.id, session.cut(4));
    await look();
    expect(await kinds()).toEqual(['tail-shrank shipped']);
  });
});

describe('an alarm of the recorder', () => {
  it('is an incident as soon as its entry is held, once', async () => {
    const session = await stored();
    const alarm = { source: 'recorder:nd7', kind: 'alarm', data: '{"reason":"hooks silent"}' };
    session.add({ data: '{"tool_name":"alarm"}' }).add(alarm).add(alarm).seal();
    for (let i = 0; i < 2; i += 1) await machine.ship(session.id, session.cut(4));
    expect(await incidents()).toMatchObject([
      { kind: 'alarm', session: session.id, count: 6, state: 'open', seen: { alarms: 2 } },
    ]);
  });

  it('is none when an agent says it', async () => {
    const session = await stored();
    session.add({ kind: 'alarm', data: '{"reason":"hooks silent"}' }).seal();
    await machine.ship(session.id, session.cut(4));
    expect(await kinds()).toEqual([]);
  });
});

describe('the metrics', () => {
  it('count heartbeats, looks and incidents', async () => {
    const { text } = await machine.fetch('GET', '/metrics');
    expect(text).toMatch(/^nd7_heartbeats_total\{said="stopped"\} [1-9]/m);
    expect(text).toMatch(/^nd7_incidents_total\{kind="machine-quiet",state="over"\} [1-9]/m);
    expect(text).toMatch(/^nd7_watch_looks_total\{result="done"\} [1-9]/m);
  });
});
