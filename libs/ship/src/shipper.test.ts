import { checkReceiptItself } from '@nd7/receipt';
import { generateKeyPair, systemClock, systemRandom, verifySignatures } from '@nd7/signing';
import { SessionDouble, VaultDouble } from '@nd7/testing';
import { parseVkey } from '@nd7/tlog';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Outbox,
  ShipError,
  Shipper,
  VaultClient,
  type SessionSource,
  type ShipEvent,
  type ShipperOptions,
  type ShipReport,
} from './index.js';

const machine = generateKeyPair();
let vault: VaultDouble;
let token: string;
let home: string;
let slept: number[];
let events: ShipEvent[];

beforeEach(async () => {
  vault = await VaultDouble.start();
  token = vault.addMachine(machine.publicKey);
  home = mkdtempSync(join(tmpdir(), 'nd7-ship-'));
  slept = [];
  events = [];
});
afterEach(async () => {
  await vault.stop();
  rmSync(home, { recursive: true });
});

const receipts = (): string => join(home, 'receipts');
const outbox = (): string => join(home, 'outbox');
const files = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** A shipper as a new process has it: nothing in memory. */
function shipper(source: SessionSource, more: Partial<ShipperOptions> = {}): Shipper {
  const client = new VaultClient({
    url: vault.url,
    access: { machine: machine.publicKey, token, signer: machine },
    clock: systemClock,
    random: systemRandom,
  });
  return new Shipper({
    source,
    client,
    signer: machine,
    origin: vault.log.origin,
    trust: { keys: [parseVkey(vault.vkey)!] },
    outbox: outbox(),
    receipts: receipts(),
    clock: systemClock,
    random: systemRandom,
    retry: { attempts: 3, baseMs: 100, capMs: 5000 },
    receiptWaitMs: 0,
    sleep: (ms) => {
      slept.push(ms);
      return Promise.resolve();
    },
    onEvent: (event) => events.push(event),
    ...more,
  });
}

/** The code of the ShipError that a pass fails with. */
async function failure(pass: Promise<ShipReport>): Promise<ShipError> {
  const outcome = await pass.catch((error: unknown) => error);
  if (!(outcome instanceof ShipError))
    throw new Error(
      `expected a ShipError, got ${JSON.stringify(outcome)} ${outcome instanceof Error ? (outcome.stack ?? '') : ''}`,
    );
  return outcome;
}

/** The vault holds exactly the log, everything it holds verifies, and a good receipt for each segment is on the disk. */
async function expectAllShipped(log: SessionDouble): Promise<void> {
  await vault.checkAll();
  const held = vault.bytes(machine.publicKey, log.session);
  expect(Buffer.from(held).equals(Buffer.from(log.range(0, vault.entries(machine.publicKey, log.session))))).toBe(true);
  expect(vault.entries(machine.publicKey, log.session)).toBe(log.entries());
  let count = 0;
  const counts = files(receipts()).flatMap((name) => (/^[0-9]+\.tlog-proof$/.test(name) ? [parseInt(name, 10)] : []));
  for (const to of counts.sort((a, b) => a - b)) {
    const verdict = await checkReceiptItself(
      readFileSync(join(receipts(), `${String(to)}.tlog-proof`)),
      { keys: [parseVkey(vault.vkey)!] },
      verifySignatures,
    );
    if (!verdict.ok) throw new Error(verdict.reason);
    expect([verdict.receipt.statement.from, verdict.receipt.statement.to]).toEqual([count, to]);
    count = to;
  }
  expect(count).toBe(log.entries());
  expect(new Outbox(outbox()).waiting()).toEqual([]);
}

describe('a vault that works', () => {
  test('entry 0 and its first seal go first, then the rest; what is acknowledged is never sent again', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    log.prompts(20);
    const first = shipper(log);
    expect(first.isPinned).toBe(false);
    const report = await first.ship();
    expect(report).toMatchObject({ session: 's-1', state: 'shipped', entries: 23, acknowledged: 23, alarms: [] });
    expect(report.segments.map(({ from, to }) => [from, to])).toEqual([
      [0, 2],
      [2, 23],
    ]);
    expect(first.isPinned).toBe(true);
    await expectAllShipped(log);
    expect(statSync(receipts()).mode & 0o777).toBe(0o700);
    expect(statSync(join(receipts(), '2.tlog-proof')).mode & 0o777).toBe(0o600);

    expect(await first.ship()).toMatchObject({ state: 'shipped', segments: [] });
    expect(await shipper(log).ship()).toMatchObject({ state: 'shipped', segments: [], acknowledged: 23 });
    expect(vault.puts.length).toBe(2);
    log.prompts(1);
    expect((await shipper(log).ship()).segments.map(({ from, to }) => [from, to])).toEqual([[23, 25]]);
    await expectAllShipped(log);
  });

  test('a long tail is cut at its seals, a thousand entries or two megabytes at most', async () => {
    const log = new SessionDouble(machine, 's-1');
    for (let i = 0; i < 9; i++) await log.prompts(255).seal();
    for (let i = 0; i < 6; i++) await log.prompts(30, 20_000).seal();
    expect((await shipper(log).ship()).state).toBe('shipped');
    for (const event of events) {
      if (event.type !== 'sending') continue;
      expect(event.to - event.from).toBeLessThanOrEqual(1000);
      expect(event.bytes).toBeLessThanOrEqual(2_000_000);
      expect(event.wire).toBeLessThan(event.bytes);
    }
    expect(vault.puts.length).toBeLessThan(10);
    await expectAllShipped(log);
  }, 30_000);

  test('a run between two seals that is longer than two megabytes goes whole; one longer than a vault takes is told', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    await log.prompts(50, 50_000).seal();
    expect((await shipper(log).ship()).state).toBe('shipped');
    await expectAllShipped(log);
    // What the log would be with 30 entries of 300 KB and no seal between them.
    const unsealed = new Uint8Array(300_000).fill(0x78).fill(10, 299_999);
    const source: SessionSource = {
      session: 's-1',
      entries: () => log.entries() + 30,
      range: (from, to) => {
        const known = log.range(Math.min(from, 53), Math.min(to, 53));
        return Buffer.concat([known, ...Array.from({ length: Math.max(0, to - Math.max(from, 53)) }, () => unsealed)]);
      },
      seal: () => Promise.resolve(),
    };
    expect(await failure(shipper(source).ship())).toMatchObject({
      code: 'refused',
      at: { entry: 53, reason: 'unsealed' },
    });
  }, 30_000);

  test('a tail that cannot be sealed is told, and what stands before its last seal is shipped', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    log.prompts(2);
    const source: SessionSource = {
      session: 's-1',
      entries: () => log.entries(),
      range: (a, b) => log.range(a, b),
      seal: () => Promise.reject(new Error('the key is gone')),
    };
    const report = await shipper(source).ship();
    expect(report).toMatchObject({ state: 'shipped', entries: 7, acknowledged: 5 });
    expect(report.alarms.map(({ code }) => code)).toEqual(['unsealed']);
  });

  test('the session is stated open once, and closed once its end is shipped', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await shipper(log).ship();
    expect(vault.statements(machine.publicKey, 's-1')).toEqual(['open/4']);
    log.add('recorder:nd7', 'session.end', { reason: 'exit' });
    await shipper(log).ship();
    await shipper(log).ship();
    expect(vault.statements(machine.publicKey, 's-1')).toEqual(['open/4', 'close/6']);
    expect(files(receipts())).toEqual(['4.tlog-proof', '6.tlog-proof', 'close-6.tlog-proof', 'open.tlog-proof']);
  });
});

describe('a vault that is away or slow', () => {
  test('answers that get lost cost nothing: the same cut again, one leaf for each segment', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(5).seal();
    log.prompts(5);
    vault.faults.loseAnswer = 2;
    expect((await shipper(log).ship()).state).toBe('shipped');
    await expectAllShipped(log);
    expect(vault.log.leaves.filter((leaf) => new TextDecoder().decode(leaf).startsWith('nd7/head/v1')).length).toBe(2);
  });

  test("killed between the vault's yes and the receipt: the next process fetches the receipt and sends nothing", async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(5).seal();
    vault.faults.loseAnswer = 1;
    expect(await shipper(log, { retry: { attempts: 1, baseMs: 1, capMs: 1 } }).ship()).toMatchObject({
      state: 'offline',
      acknowledged: 0,
    });
    expect(files(outbox())).toEqual(['0']);
    expect(await shipper(log).ship()).toMatchObject({ state: 'shipped', acknowledged: 7 });
    expect(vault.puts.length).toBe(1);
    await expectAllShipped(log);
  });

  test('busy: waits as it is asked to, jitters otherwise, gives up for now after a while', async () => {
    const log = new SessionDouble(machine, 's-1');
    vault.faults.busy = 2;
    vault.faults.retryAfter = 3;
    expect((await shipper(log).ship()).state).toBe('shipped');
    expect(slept).toEqual([3000, 3000]);
    slept = [];
    log.prompts(1);
    vault.faults.busy = 3;
    delete vault.faults.retryAfter;
    const report = await shipper(log).ship();
    expect(report).toMatchObject({ state: 'offline', acknowledged: 2 });
    expect(report.problem).toMatch(/busy/);
    expect(slept.length).toBe(2);
    expect(slept[0]).toBeLessThanOrEqual(100);
    expect(slept[1]).toBeLessThanOrEqual(200);
    vault.faults.busy = 1;
    vault.faults.retryAfter = 600;
    slept = [];
    expect(await shipper(log).ship()).toMatchObject({ state: 'offline', retryAfter: 600_000 });
    expect(slept).toEqual([]);
    expect((await shipper(log).ship()).state).toBe('shipped');
    await expectAllShipped(log);
  });

  test('offline: everything is queued, and goes when it is back', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    await shipper(log).ship();
    const away = new VaultClient({
      url: 'http://127.0.0.1:1',
      access: { machine: machine.publicKey, token, signer: machine },
      clock: systemClock,
      random: systemRandom,
    });
    log.prompts(3);
    const report = await shipper(log, { client: away }).ship();
    expect(report).toMatchObject({ state: 'offline', entries: 8, acknowledged: 5 });
    expect(report.problem).toMatch(/cannot reach http:\/\/127\.0\.0\.1:1/);
    expect((await shipper(log).ship()).state).toBe('shipped');
    await expectAllShipped(log);
  });

  test('202 is no receipt: pending until it is published, and no second leaf', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    vault.faults.hold = true;
    expect(await shipper(log).ship()).toMatchObject({ state: 'pending', acknowledged: 0 });
    expect(await shipper(log).ship()).toMatchObject({ state: 'pending', acknowledged: 0 });
    expect(files(receipts())).toEqual([]);
    const one = shipper(log);
    expect((await one.ship()).state).toBe('pending');
    vault.faults.hold = false;
    expect(await one.ship()).toMatchObject({ state: 'shipped', acknowledged: 5 });
    await expectAllShipped(log);
    expect(vault.log.leaves.length).toBe(2);
  });

  test('another process has shipped on: goes on where the vault says', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    const [a, b] = [
      shipper(log),
      shipper(log, { receipts: join(home, 'others'), outbox: join(home, 'others-outbox') }),
    ];
    await a.ship();
    await b.ship();
    log.prompts(3);
    await b.ship();
    log.prompts(4);
    const report = await a.ship();
    expect(report).toMatchObject({ state: 'shipped', acknowledged: log.entries() });
    expect(vault.puts.map(({ status }) => status)).toContain(409);
    await expectAllShipped(log);
  });
});

describe('a vault that lies', () => {
  test.each([
    ['wrongKey', 'bad-signature'],
    ['badSignature', 'bad-signature'],
    ['wrongInclusion', 'bad-inclusion'],
    ['garbage', 'bad-receipt'],
  ] as const)('%s: fails loudly, keeps everything', async (fault, reason) => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    vault.faults[fault] = true;
    const error = await failure(shipper(log).ship());
    expect(error).toMatchObject({ code: 'bad-receipt', at: { session: 's-1', entry: 0, reason } });
    expect(error.message).toMatch(/NO RECEIPT/);
    expect(files(receipts())).toEqual([]);
    expect(files(outbox())).toEqual(['0', '0.refused-1']);
    vault.faults[fault] = false;
    expect((await shipper(log).ship()).acknowledged).toBe(5);
    await expectAllShipped(log);
  });

  test('a good receipt for something else is none', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    await shipper(log).ship();
    log.prompts(2);
    vault.faults.otherReceipt = 0;
    const error = await failure(shipper(log).ship());
    expect(error).toMatchObject({ code: 'bad-receipt', at: { entry: 2, reason: 'receipt-mismatch' } });
    expect(files(receipts()).filter((name) => /^[0-9]/.test(name))).toEqual(['2.tlog-proof']);
  });

  test('a receipt of another session of this machine is none', async () => {
    const [other, log] = [new SessionDouble(machine, 's-0'), new SessionDouble(machine, 's-1')];
    await shipper(other, { receipts: join(home, 'r0'), outbox: join(home, 'o0') }).ship();
    vault.faults.otherReceipt = 0;
    expect((await failure(shipper(log).ship())).at.reason).toBe('receipt-mismatch');
  });

  test.each([
    'revoked',
    'unauthorized',
    'stale-request',
    'bad-claim',
    'bad-member',
    'unsealed',
    'too-large',
    'bad-seal',
  ] as const)('%s: not tried again', async (code) => {
    const log = new SessionDouble(machine, 's-1');
    vault.faults.refuse = code;
    const error = await failure(shipper(log).ship());
    expect(error).toMatchObject({ code: 'refused' });
    expect(error.message).toContain(code);
    expect(vault.puts.length).toBe(1);
    expect(files(outbox())).toEqual(['0']);
  });

  test('a vault that sends us round in circles is told so', async () => {
    const log = new SessionDouble(machine, 's-1');
    vault.faults.refuse = 'overlap';
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'disagrees' });
    vault.faults.refuse = 'disagrees';
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'disagrees' });
  });

  test('a Location at another host is not followed', async () => {
    const log = new SessionDouble(machine, 's-1');
    vault.faults.hold = true;
    vault.faults.location = 'http://192.0.2.1/receipt';
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'bad-answer' });
  });
});

describe('a vault that was set back', () => {
  test('in mid-flight: an alarm, the same bytes under the same claims, then on; both receipts are kept', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    const one = shipper(log);
    await one.ship();
    for (let i = 0; i < 3; i++) {
      log.prompts(3);
      await one.ship();
    }
    const before = vault.bytes(machine.publicKey, 's-1');
    vault.restoreTo(machine.publicKey, 's-1', 2);
    log.prompts(1);
    const report = await one.ship();
    expect(report).toMatchObject({ state: 'shipped', acknowledged: 16 });
    expect(report.alarms.map(({ code }) => code)).toEqual(['vault-behind', 'receipt-changed', 'receipt-changed']);
    expect(report.segments.map(({ from, to }) => [from, to])).toEqual([
      [6, 10],
      [10, 14],
      [14, 16],
    ]);
    expect(Buffer.from(vault.bytes(machine.publicKey, 's-1')).subarray(0, before.length).equals(before)).toBe(true);
    await vault.checkAll();
    expect(files(receipts()).filter((name) => name.startsWith('10'))).toEqual(['10-2.tlog-proof', '10.tlog-proof']);
  });

  test('to nothing, seen by a new process, which is cut off once on the way', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await shipper(log).ship();
    await log.prompts(2).seal();
    await shipper(log).ship();
    vault.restoreTo(machine.publicKey, 's-1', 0);
    const one = shipper(log, { retry: { attempts: 1, baseMs: 1, capMs: 1 } });
    vault.faults.loseAnswer = 1;
    expect(await one.ship()).toMatchObject({ state: 'offline', acknowledged: 7 });
    const report = await one.ship();
    expect(report.state).toBe('shipped');
    expect(report.alarms.map(({ code }) => code)).toContain('vault-behind');
    await expectAllShipped(log);
  });
});

describe('a log that was changed', () => {
  const shipped = async (): Promise<SessionDouble> => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await log.prompts(4).seal();
    await shipper(log).ship();
    return log;
  };

  test.each([
    ['with its receipts', false, 0],
    ['with its receipts, and recorded on', false, 3],
    ['without them', true, 0],
    ['without them, and recorded on', true, 3],
  ] as const)('rewritten %s: a fork, which convicts by itself', async (_, isForgetful, more) => {
    const log = await shipped();
    const forged = log.rewritten(1);
    if (more > 0) await forged.prompts(more).seal();
    if (isForgetful) for (const folder of [receipts(), outbox()]) rmSync(folder, { recursive: true, force: true });
    const kept = files(receipts());
    const error = await failure(shipper(forged).ship());
    expect(error).toMatchObject({ code: 'fork', at: { session: 's-1' } });
    expect(error.message).toMatch(/FORK \(409\)/);
    expect(vault.forks.length).toBe(1);
    expect(files(receipts())).toEqual(expect.arrayContaining(kept));
    await vault.checkAll();
    expect(await failure(shipper(forged).ship())).toMatchObject({ code: 'fork' });
  });

  test('cut back: nothing is sent, no fork is made', async () => {
    const log = await shipped();
    log.lines.length = 4;
    const puts = vault.puts.length;
    expect(await failure(shipper(log).ship())).toMatchObject({
      code: 'log-behind',
      at: { entry: 4, reason: 'truncated' },
    });
    rmSync(receipts(), { recursive: true });
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'log-behind' });
    expect([vault.puts.length, vault.forks.length]).toEqual([puts, 0]);
  });

  test.each([
    ['wrong-prev', (text: string) => text.replace('xxx', 'yyy'), 10],
    ['bad-json', (text: string) => text.replace('"data"', '"data'), 9],
    ['wrong-seq', (text: string) => text.replace('"seq":9', '"seq":8'), 9],
    ['duplicate-key', (text: string) => text.replace('"kind"', '"time"'), 9],
    ['bad-prefix', (text: string) => text.replace('{"v":1,', '{"w":1,'), 9],
  ] as const)('damaged (%s): nothing is signed', async (reason, change, entry) => {
    const log = await shipped();
    await log.prompts(3).seal();
    log.edit(9, change);
    const puts = vault.puts.length;
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'log-broken', at: { entry, reason } });
    expect(vault.puts.length).toBe(puts);
  });

  test('after a cut that was never sent: the cut is kept aside and told, and what stands there now is shipped', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    const away = new VaultClient({
      url: vault.url,
      access: { machine: machine.publicKey, token, signer: machine },
      clock: systemClock,
      random: systemRandom,
    });
    vault.faults.refuse = 'busy';
    expect((await shipper(log, { client: away }).ship()).state).toBe('offline');
    expect(files(outbox())).toEqual(['0']);
    delete vault.faults.refuse;
    const forged = log.rewritten(1);
    const report = await shipper(forged).ship();
    expect(report.alarms.map(({ code }) => code)).toEqual(['cut-changed']);
    expect(files(outbox())).toEqual(['0.superseded-1']);
    await expectAllShipped(forged);
  });
});

describe('the disk', () => {
  test('a receipt file that holds none any more is told, kept, and fetched again', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await log.prompts(2).seal();
    await shipper(log).ship();
    writeFileSync(join(receipts(), '7.tlog-proof'), 'scribble');
    const report = await shipper(log).ship();
    expect(report.alarms.map(({ code }) => code)).toEqual(['bad-receipt-file']);
    expect(report.acknowledged).toBe(7);
    expect(readFileSync(join(receipts(), '7-2.tlog-proof'), 'utf8')).toBe('scribble');
    await expectAllShipped(log);
    expect(vault.puts.length).toBe(2);
  });

  test('half-written cuts are none', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await shipper(log).ship();
    for (const text of ['', 'origin', 'origin v/a\nsignature x\n']) {
      log.prompts(1);
      writeFileSync(join(outbox(), String(vault.entries(machine.publicKey, 's-1'))), text);
      expect((await shipper(log).ship()).state).toBe('shipped');
    }
    await expectAllShipped(log);
  });

  test('an outbox that cannot be written stops before anything is sent', async () => {
    const log = new SessionDouble(machine, 's-1');
    writeFileSync(outbox(), 'in the way');
    expect(await failure(shipper(log).ship())).toMatchObject({ code: 'io' });
    expect(vault.puts).toEqual([]);
  });
});
