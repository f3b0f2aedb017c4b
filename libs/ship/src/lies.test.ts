import { SessionDouble } from '@nd7/testing';
import { join } from 'node:path';
import { Bench, failure, files, machine } from './bench.fixture.js';

let bench: Bench;
beforeEach(async () => (bench = await Bench.open()));
afterEach(() => bench.close());

describe('a vault that lies', () => {
  test.each([
    ['wrongKey', 'bad-signature'],
    ['badSignature', 'bad-signature'],
    ['wrongInclusion', 'bad-inclusion'],
    ['garbage', 'bad-receipt'],
  ] as const)('%s: fails loudly, keeps everything', async (fault, reason) => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(3).seal();
    bench.vault.faults[fault] = true;
    const error = await failure(bench.shipper(log).ship());
    expect(error).toMatchObject({ code: 'bad-receipt', at: { session: 's-1', entry: 0, reason } });
    expect(error.message).toMatch(/NO RECEIPT/);
    expect(files(bench.receipts)).toEqual([]);
    expect(files(bench.outbox)).toEqual(['0', '0.refused-1']);
    bench.vault.faults[fault] = false;
    expect((await bench.shipper(log).ship()).acknowledged).toBe(5);
    await bench.checkAllShipped(log);
  });

  test('a good receipt for something else is none', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    await bench.shipper(log).ship();
    log.prompts(2);
    bench.vault.faults.otherReceipt = 0;
    const error = await failure(bench.shipper(log).ship());
    expect(error).toMatchObject({ code: 'bad-receipt', at: { entry: 2, reason: 'receipt-mismatch' } });
    expect(files(bench.receipts).filter((name) => /^[0-9]/.test(name))).toEqual(['2.tlog-proof']);
  });

  test('a receipt of another session of this machine is none', async () => {
    const [other, log] = [new SessionDouble(machine, 's-0'), new SessionDouble(machine, 's-1')];
    await bench.shipper(other, { receipts: join(bench.home, 'r0'), outbox: join(bench.home, 'o0') }).ship();
    bench.vault.faults.otherReceipt = 0;
    expect((await failure(bench.shipper(log).ship())).at.reason).toBe('receipt-mismatch');
  });

  test.each(['revoked', 'unauthorized', 'bad-claim', 'bad-member', 'unsealed', 'too-large', 'bad-seal'] as const)(
    '%s: not tried again',
    async (code) => {
      const log = new SessionDouble(machine, 's-1');
      bench.vault.faults.refuse = code;
      const error = await failure(bench.shipper(log).ship());
      expect(error).toMatchObject({ code: 'refused' });
      expect(error.message).toContain(code);
      expect(bench.vault.puts.length).toBe(1);
      expect(files(bench.outbox)).toEqual(['0']);
    },
  );

  test('a vault that sends us round in circles is told so', async () => {
    const log = new SessionDouble(machine, 's-1');
    bench.vault.faults.refuse = 'overlap';
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'disagrees' });
    bench.vault.faults.refuse = 'disagrees';
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'disagrees' });
  });

  test('a Location at another host is not followed', async () => {
    const log = new SessionDouble(machine, 's-1');
    bench.vault.faults.hold = true;
    bench.vault.faults.location = 'http://192.0.2.1/receipt';
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'bad-answer' });
  });
});

describe('a vault that was set back', () => {
  test('in mid-flight: an alarm, the same bytes under the same claims, then on; both receipts are kept', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.seal();
    const one = bench.shipper(log);
    await one.ship();
    for (let i = 0; i < 3; i++) {
      log.prompts(3);
      await one.ship();
    }
    const before = bench.vault.bytes(machine.publicKey, 's-1');
    bench.vault.restoreTo(machine.publicKey, 's-1', 2);
    log.prompts(1);
    const report = await one.ship();
    expect(report).toMatchObject({ state: 'shipped', acknowledged: 16 });
    expect(report.alarms.map(({ code }) => code)).toEqual(['vault-behind', 'receipt-changed', 'receipt-changed']);
    expect(report.segments.map(({ from, to }) => [from, to])).toEqual([
      [6, 10],
      [10, 14],
      [14, 16],
    ]);
    expect(Buffer.from(bench.vault.bytes(machine.publicKey, 's-1')).subarray(0, before.length).equals(before)).toBe(
      true,
    );
    await bench.vault.checkAll();
    expect(files(bench.receipts).filter((name) => name.startsWith('10'))).toEqual(['10-2.tlog-proof', '10.tlog-proof']);
  });

  test('to nothing, seen by a new process, which is cut off once on the way', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await bench.shipper(log).ship();
    await log.prompts(2).seal();
    await bench.shipper(log).ship();
    bench.vault.restoreTo(machine.publicKey, 's-1', 0);
    const one = bench.shipper(log, { retry: { attempts: 1, baseMs: 1, capMs: 1 } });
    bench.vault.faults.loseAnswer = 1;
    expect(await one.ship()).toMatchObject({ state: 'offline', acknowledged: 7 });
    const report = await one.ship();
    expect(report.state).toBe('shipped');
    expect(report.alarms.map(({ code }) => code)).toContain('vault-behind');
    await bench.checkAllShipped(log);
  });
});
