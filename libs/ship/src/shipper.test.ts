import { SessionDouble } from '@nd7/testing';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Bench, failure, files, machine } from './bench.fixture.js';
import type { SessionSource } from './index.js';

let bench: Bench;
beforeEach(async () => (bench = await Bench.open()));
afterEach(() => bench.close());

describe('a vault that works', () => {
  test('entry 0 and its first seal go first, then the rest; what is acknowledged is never sent again', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    log.prompts(20);
    const first = bench.shipper(log);
    expect(first.isPinned).toBe(false);
    const report = await first.ship();
    expect(report).toMatchObject({ session: 's-1', state: 'shipped', entries: 23, acknowledged: 23, alarms: [] });
    expect(report.segments.map(({ from, to }) => [from, to])).toEqual([
      [0, 2],
      [2, 23],
    ]);
    expect(first.isPinned).toBe(true);
    await bench.checkAllShipped(log);
    expect(statSync(bench.receipts).mode & 0o777).toBe(0o700);
    expect(statSync(join(bench.receipts, '2.tlog-proof')).mode & 0o777).toBe(0o600);

    expect(await first.ship()).toMatchObject({ state: 'shipped', segments: [] });
    expect(await bench.shipper(log).ship()).toMatchObject({ state: 'shipped', segments: [], acknowledged: 23 });
    expect(bench.vault.puts.length).toBe(2);
    log.prompts(1);
    expect((await bench.shipper(log).ship()).segments.map(({ from, to }) => [from, to])).toEqual([[23, 25]]);
    await bench.checkAllShipped(log);
  });

  test('a long tail is cut at its seals, a thousand entries or two megabytes at most', async () => {
    const log = new SessionDouble(machine, 's-1');
    for (let i = 0; i < 9; i++) await log.prompts(255).seal();
    for (let i = 0; i < 6; i++) await log.prompts(30, 20_000).seal();
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    for (const event of bench.events) {
      if (event.type !== 'sending') continue;
      expect(event.to - event.from).toBeLessThanOrEqual(1000);
      expect(event.bytes).toBeLessThanOrEqual(2_000_000);
      expect(event.wire).toBeLessThan(event.bytes);
    }
    expect(bench.vault.puts.length).toBeLessThan(10);
    await bench.checkAllShipped(log);
  }, 30_000);

  test('a run between two seals that is longer than two megabytes goes whole; one longer than a vault takes is told', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    await log.prompts(50, 50_000).seal();
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    await bench.checkAllShipped(log);
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
    expect(await failure(bench.shipper(source).ship())).toMatchObject({
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
    const report = await bench.shipper(source).ship();
    expect(report).toMatchObject({ state: 'shipped', entries: 7, acknowledged: 5 });
    expect(report.alarms.map(({ code }) => code)).toEqual(['unsealed']);
  });

  test('the session is stated open once, and closed once its end is shipped', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await bench.shipper(log).ship();
    expect(bench.vault.statements(machine.publicKey, 's-1')).toEqual(['open/4']);
    log.add('recorder:nd7', 'session.end', { reason: 'exit' });
    await bench.shipper(log).ship();
    await bench.shipper(log).ship();
    expect(bench.vault.statements(machine.publicKey, 's-1')).toEqual(['open/4', 'close/6']);
    expect(files(bench.receipts)).toEqual(['4.tlog-proof', '6.tlog-proof', 'close-6.tlog-proof', 'open.tlog-proof']);
  });
});

describe('a vault that is away or slow', () => {
  test('answers that get lost cost nothing: the same cut again, one leaf for each segment', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(5).seal();
    log.prompts(5);
    bench.vault.faults.loseAnswer = 2;
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    await bench.checkAllShipped(log);
    expect(
      bench.vault.log.leaves.filter((leaf) => new TextDecoder().decode(leaf).startsWith('nd7/head/v1')).length,
    ).toBe(2);
  });

  test("killed between the vault's yes and the receipt: the next process fetches the receipt and sends nothing", async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(5).seal();
    bench.vault.faults.loseAnswer = 1;
    expect(await bench.shipper(log, { retry: { attempts: 1, baseMs: 1, capMs: 1 } }).ship()).toMatchObject({
      state: 'offline',
      acknowledged: 0,
    });
    expect(files(bench.outbox)).toEqual(['0']);
    expect(await bench.shipper(log).ship()).toMatchObject({ state: 'shipped', acknowledged: 7 });
    expect(bench.vault.puts.length).toBe(1);
    await bench.checkAllShipped(log);
  });

  test('busy: waits as it is asked to, jitters otherwise, gives up for now after a while', async () => {
    const log = new SessionDouble(machine, 's-1');
    bench.vault.faults.busy = 2;
    bench.vault.faults.retryAfter = 3;
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    expect(bench.slept).toEqual([3000, 3000]);
    bench.slept.length = 0;
    log.prompts(1);
    bench.vault.faults.busy = 3;
    delete bench.vault.faults.retryAfter;
    const report = await bench.shipper(log).ship();
    expect(report).toMatchObject({ state: 'offline', acknowledged: 2 });
    expect(report.problem).toMatch(/busy/);
    expect(bench.slept.length).toBe(2);
    expect(bench.slept[0]).toBeLessThanOrEqual(100);
    expect(bench.slept[1]).toBeLessThanOrEqual(200);
    bench.vault.faults.busy = 1;
    bench.vault.faults.retryAfter = 600;
    bench.slept.length = 0;
    expect(await bench.shipper(log).ship()).toMatchObject({ state: 'offline', retryAfter: 600_000 });
    expect(bench.slept).toEqual([]);
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    await bench.checkAllShipped(log);
  });

  test('offline: everything is queued, and goes when it is back', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    await bench.shipper(log).ship();
    const away = bench.client('http://127.0.0.1:1');
    log.prompts(3);
    const report = await bench.shipper(log, { client: away }).ship();
    expect(report).toMatchObject({ state: 'offline', entries: 8, acknowledged: 5 });
    expect(report.problem).toMatch(/cannot reach http:\/\/127\.0\.0\.1:1/);
    expect((await bench.shipper(log).ship()).state).toBe('shipped');
    await bench.checkAllShipped(log);
  });

  test('202 is no receipt: pending until it is published, and no second leaf', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    bench.vault.faults.hold = true;
    expect(await bench.shipper(log).ship()).toMatchObject({ state: 'pending', acknowledged: 0 });
    expect(await bench.shipper(log).ship()).toMatchObject({ state: 'pending', acknowledged: 0 });
    expect(files(bench.receipts)).toEqual([]);
    const one = bench.shipper(log);
    expect((await one.ship()).state).toBe('pending');
    bench.vault.faults.hold = false;
    expect(await one.ship()).toMatchObject({ state: 'shipped', acknowledged: 5 });
    await bench.checkAllShipped(log);
    expect(bench.vault.log.leaves.length).toBe(2);
  });

  test('another process has shipped on: goes on where the vault says', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    const [a, b] = [
      bench.shipper(log),
      bench.shipper(log, { receipts: join(bench.home, 'others'), outbox: join(bench.home, 'others-outbox') }),
    ];
    await a.ship();
    await b.ship();
    log.prompts(3);
    await b.ship();
    log.prompts(4);
    const report = await a.ship();
    expect(report).toMatchObject({ state: 'shipped', acknowledged: log.entries() });
    expect(bench.vault.puts.map(({ status }) => status)).toContain(409);
    await bench.checkAllShipped(log);
  });
});
