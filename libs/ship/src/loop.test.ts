import { generateKeyPair, systemClock, systemRandom } from '@nd7/signing';
import { SessionDouble, VaultDouble } from '@nd7/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ShipLoop, type Alarm, type ShipError, type ShipLoopOptions } from './index.js';

const machine = generateKeyPair();
let vault: VaultDouble;
let home: string;
let logs: Map<string, SessionDouble>;
let loops: ShipLoop[];

beforeEach(async () => {
  vault = await VaultDouble.start();
  home = mkdtempSync(join(tmpdir(), 'nd7-loop-'));
  logs = new Map();
  loops = [];
});
afterEach(async () => {
  await Promise.all(loops.map((loop) => loop.stop()));
  await vault.stop();
  rmSync(home, { recursive: true });
});

function loop(more: Partial<ShipLoopOptions> = {}): ShipLoop {
  const file = {
    url: vault.url,
    team: 'acme',
    origin: vault.log.origin,
    vkey: vault.vkey,
    machine: machine.publicKey,
    token: vault.addMachine(machine.publicKey),
    policy: 'quorum none\n',
  };
  const made = new ShipLoop({
    home,
    vault: file,
    signer: machine,
    clock: systemClock,
    random: systemRandom,
    delayMs: 20,
    receiptWaitMs: 2000,
    retry: { attempts: 2, baseMs: 5, capMs: 20 },
    source: (session) => {
      const log = logs.get(session);
      if (log === undefined) throw new Error(`no log of ${session}`);
      return log;
    },
    ...more,
  });
  loops.push(made);
  return made;
}

function record(session: string): SessionDouble {
  const log = new SessionDouble(machine, session);
  logs.set(session, log);
  return log;
}

/** Waits for something that happens by itself. */
async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    if (i > 1500) throw new Error('it never happened');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('entries that are noticed are shipped; the first segment pins the key at once', async () => {
  const log = record('s-1');
  await log.seal();
  const ship = loop();
  expect(await ship.pinned('s-1', 20_000)).toBe(true);
  for (let i = 0; i < 10; i++) {
    log.prompts(1);
    ship.notice('s-1');
  }
  await until(() => vault.entries(machine.publicKey, 's-1') === log.entries());
  // Ten notices, one cut: the seals made are few.
  expect(log.entries()).toBeLessThan(17);
  await vault.checkAll();
  expect(ship.status()).toMatchObject({
    origin: 'vault.test/acme',
    sessions: [{ session: 's-1', pinned: true, failures: 0 }],
  });
}, 30_000);

test('a vault that is away: not pinned in time, and shipped when it is back', async () => {
  const log = record('s-1');
  vault.faults.busy = 1_000_000;
  const ship = loop();
  expect(await ship.pinned('s-1', 50)).toBe(false);
  const outcome = await ship.flush(['s-1']);
  expect(outcome['s-1']).toMatchObject({ state: 'offline', acknowledged: 0 });
  vault.faults.busy = 0;
  await until(() => vault.entries(machine.publicKey, 's-1') === log.entries() && log.entries() > 1);
  expect(await ship.pinned('s-1', 20_000)).toBe(true);
}, 30_000);

test('a pin that is on the disk waits for no vault', async () => {
  await record('s-1').seal();
  expect(await loop().pinned('s-1', 20_000)).toBe(true);
  vault.faults.busy = 1_000_000;
  const again = loop({ retry: { attempts: 1000, baseMs: 1000, capMs: 1000 } });
  expect(await again.pinned('s-1', 20_000)).toBe(true);
}, 30_000);

test('an alarm is told once, however often it is met', async () => {
  const alarms: string[] = [];
  const log = record('s-1');
  await log.prompts(2).seal();
  const source = {
    session: 's-1',
    entries: () => log.entries(),
    range: (from: number, to: number) => log.range(from, to),
    seal: () => Promise.reject(new Error('no key')),
  };
  const ship = loop({ source: () => source, onAlarm: (_, { code }) => alarms.push(code) });
  log.prompts(1);
  for (let i = 0; i < 3; i++) await ship.flush(['s-1']);
  expect(alarms).toEqual(['unsealed']);
  expect(ship.status().sessions[0]?.alarms?.map(({ code }) => code)).toEqual(['unsealed']);
}, 30_000);

test('many sessions, each its own; flush ships all that it was told of', async () => {
  const ship = loop();
  for (let i = 0; i < 6; i++) {
    record(`s-${String(i)}`).prompts(i);
    ship.notice(`s-${String(i)}`);
  }
  const outcome = await ship.flush();
  expect(Object.values(outcome).map(({ state }) => state)).toEqual(new Array(6).fill('shipped'));
  for (const [session, log] of logs) expect(vault.entries(machine.publicKey, session)).toBe(log.entries());
  await vault.checkAll();
}, 30_000);

test('a fork gives the session up, tells once, and holds nobody else up', async () => {
  const failures: [string, ShipError][] = [];
  const log = record('s-1');
  await log.prompts(3).seal();
  await loop().flush(['s-1']);
  logs.set('s-1', log.rewritten(1));
  const ship = loop({ onFailure: (session, error) => failures.push([session, error]) });
  ship.notice('s-1');
  await until(() => failures.length > 0);
  expect(failures.map(([session, { code }]) => [session, code])).toEqual([['s-1', 'fork']]);
  const puts = vault.puts.length;
  ship.notice('s-1');
  expect(await ship.pinned('s-1', 10)).toBe(true);
  record('s-2');
  expect(await ship.pinned('s-2', 20_000)).toBe(true);
  expect(vault.puts.filter(({ session }) => session === 's-1').length).toBe(puts);
  expect((await ship.flush(['s-1']))['s-1']).toMatchObject({ state: 'failed', code: 'fork' });
}, 30_000);

test('a log that cannot be opened is tried again', async () => {
  const ship = loop();
  ship.notice('s-1');
  expect((await ship.flush(['s-1']))['s-1']).toMatchObject({ state: 'failed', code: 'io', problem: 'no log of s-1' });
  expect(ship.status().sessions).toMatchObject([{ session: 's-1', code: 'io', problem: 'no log of s-1', failures: 1 }]);
  record('s-1');
  expect((await ship.flush(['s-1']))['s-1']).toMatchObject({ state: 'shipped' });
}, 30_000);

test('a machine that signs with another key than it was enrolled with is told before anything is sent', () => {
  expect(() => loop({ signer: generateKeyPair() })).toThrow(
    expect.objectContaining({ code: 'wrong-key', message: expect.stringContaining('keys/machine.key') as string }),
  );
  expect(vault.puts).toEqual([]);
});

test('alarms are told with their session', async () => {
  const alarms: [string, Alarm][] = [];
  const log = record('s-1');
  await log.prompts(2).seal();
  await loop().flush(['s-1']);
  vault.restoreTo(machine.publicKey, 's-1', 0);
  await loop({ onAlarm: (session, alarm) => alarms.push([session, alarm]) }).flush(['s-1']);
  expect(alarms.map(([session, { code }]) => [session, code])).toEqual([
    ['s-1', 'vault-behind'],
    ['s-1', 'receipt-changed'],
  ]);
}, 30_000);

test('stopped in the middle: nothing is under way any more, nothing is lost', async () => {
  const log = record('s-1');
  await log.prompts(5).seal();
  vault.faults.hold = true;
  const ship = loop({ receiptWaitMs: 1_000_000 });
  ship.notice('s-1');
  await until(() => vault.puts.length > 0);
  await ship.stop();
  ship.notice('s-1');
  expect(await ship.pinned('s-1', 1_000_000)).toBe(false);
  vault.faults.hold = false;
  expect((await loop().flush(['s-1']))['s-1']).toMatchObject({ state: 'shipped' });
  await vault.checkAll();
}, 30_000);

test('of many sessions that are shipped only the newest are kept in mind; one that is forgotten is shipped again when it goes on', async () => {
  const ship = loop();
  const names = Array.from({ length: 70 }, (_, i) => `s-${String(i)}`);
  for (const name of names) {
    await record(name).seal();
    await ship.flush([name]);
  }
  const { sessions } = ship.status();
  expect(sessions.length).toBeLessThanOrEqual(65);
  expect(sessions.map(({ session }) => session)).not.toContain('s-0');
  logs.get('s-0')?.prompts(3);
  expect((await ship.flush(['s-0']))['s-0']).toMatchObject({ state: 'shipped', entries: logs.get('s-0')?.entries() });
  await vault.checkAll();
}, 60_000);
