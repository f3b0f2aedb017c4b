import { SessionDouble } from '@nd7/testing';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Bench, failure, files, machine } from './bench.fixture.js';

let bench: Bench;
beforeEach(async () => (bench = await Bench.open()));
afterEach(() => bench.close());

describe('a log that was changed', () => {
  const shipped = async (): Promise<SessionDouble> => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await log.prompts(4).seal();
    await bench.shipper(log).ship();
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
    if (isForgetful)
      for (const folder of [bench.receipts, bench.outbox]) rmSync(folder, { recursive: true, force: true });
    const kept = files(bench.receipts);
    const error = await failure(bench.shipper(forged).ship());
    expect(error).toMatchObject({ code: 'fork', at: { session: 's-1' } });
    expect(error.message).toMatch(/FORK \(409\)/);
    expect(bench.vault.forks.length).toBe(1);
    expect(files(bench.receipts)).toEqual(expect.arrayContaining(kept));
    await bench.vault.checkAll();
    expect(await failure(bench.shipper(forged).ship())).toMatchObject({ code: 'fork' });
  });

  test('cut back: nothing is sent, no fork is made', async () => {
    const log = await shipped();
    log.lines.length = 4;
    const puts = bench.vault.puts.length;
    expect(await failure(bench.shipper(log).ship())).toMatchObject({
      code: 'log-behind',
      at: { entry: 4, reason: 'truncated' },
    });
    rmSync(bench.receipts, { recursive: true });
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'log-behind' });
    expect([bench.vault.puts.length, bench.vault.forks.length]).toEqual([puts, 0]);
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
    const puts = bench.vault.puts.length;
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'log-broken', at: { entry, reason } });
    expect(bench.vault.puts.length).toBe(puts);
  });

  test('after a cut that was never sent: the cut is kept aside and told, and what stands there now is shipped', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    const away = bench.client();
    bench.vault.faults.refuse = 'busy';
    expect((await bench.shipper(log, { client: away }).ship()).state).toBe('offline');
    expect(files(bench.outbox)).toEqual(['0']);
    delete bench.vault.faults.refuse;
    const forged = log.rewritten(1);
    const report = await bench.shipper(forged).ship();
    expect(report.alarms.map(({ code }) => code)).toEqual(['cut-changed']);
    expect(files(bench.outbox)).toEqual(['0.superseded-1']);
    await bench.checkAllShipped(forged);
  });
});

describe('the disk', () => {
  test('a receipt file that holds none any more is told, kept, and fetched again', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await log.prompts(2).seal();
    await bench.shipper(log).ship();
    writeFileSync(join(bench.receipts, '7.tlog-proof'), 'scribble');
    const report = await bench.shipper(log).ship();
    expect(report.alarms.map(({ code }) => code)).toEqual(['bad-receipt-file']);
    expect(report.acknowledged).toBe(7);
    expect(readFileSync(join(bench.receipts, '7-2.tlog-proof'), 'utf8')).toBe('scribble');
    await bench.checkAllShipped(log);
    expect(bench.vault.puts.length).toBe(2);
  });

  test('half-written cuts are none', async () => {
    const log = new SessionDouble(machine, 's-1');
    await log.prompts(2).seal();
    await bench.shipper(log).ship();
    for (const text of ['', 'origin', 'origin v/a\nsignature x\n']) {
      log.prompts(1);
      writeFileSync(join(bench.outbox, String(bench.vault.entries(machine.publicKey, 's-1'))), text);
      expect((await bench.shipper(log).ship()).state).toBe('shipped');
    }
    await bench.checkAllShipped(log);
  });

  test('an outbox that cannot be written stops before anything is sent', async () => {
    const log = new SessionDouble(machine, 's-1');
    writeFileSync(bench.outbox, 'in the way');
    expect(await failure(bench.shipper(log).ship())).toMatchObject({ code: 'io' });
    expect(bench.vault.puts).toEqual([]);
  });
});
