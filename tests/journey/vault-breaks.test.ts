// The real vault and its database killed in the middle of taking a segment, and publication held back.
import type { SessionDouble } from '@nd7/testing';
import { Machine } from './machine.fixture.js';
import { RealVault, until } from './real-vault.fixture.js';
import { Wayside, type Passing } from './wayside.fixture.js';

const isPut = ({ method }: Passing): boolean => method === 'PUT';

describe('the real vault, when it breaks', () => {
  let vault: RealVault;
  let way: Wayside;
  let machine: Machine;
  beforeAll(async () => {
    vault = await RealVault.start();
    way = await Wayside.start(vault.url);
    machine = await Machine.enrol(vault, way);
  });
  beforeEach(() => {
    way.seen.length = 0;
    way.honest();
  });
  afterAll(async () => {
    await way.down();
    machine.remove();
    await vault.stop();
  });

  /** A log of so many segments of a thousand entries: one pass with time to break in. */
  const long = async (session: string, segments: number): Promise<SessionDouble> => {
    const log = machine.log(session);
    for (let i = 0; i < segments * 5; i++) await log.prompts(199).seal();
    return log;
  };
  const everySegmentOnce = async (log: SessionDouble): Promise<void> => {
    await machine.holdsAll(log);
    const heads = (await vault.leavesOf(log.session)).filter((leaf) => leaf.startsWith('head '));
    expect(new Set(heads).size).toBe(heads.length);
    expect(heads.map((leaf) => Number(leaf.split(' ')[2])).sort((a, b) => a - b)).toEqual(machine.counts(log.session));
    await vault.checkAll();
  };

  it('kill -9 of the vault while it takes a segment, twice: queued, and all shipped when it is back', async () => {
    const log = await long('vault-killed', 4);
    for (const at of [2, 4]) {
      let puts = 0;
      way.before = (passing) => {
        // The request is on its way when the vault dies: taken or not, nobody is told.
        if (isPut(passing) && ++puts === at) setTimeout(() => void vault.kill(), 15);
      };
      expect(await machine.ship(log)).toMatchObject({
        state: 'offline',
        alarms: [],
        problem: expect.any(String) as string,
      });
      expect(machine.counts(log.session).length).toBeGreaterThan(0);
      way.honest();
      await vault.kill();
      await vault.serve();
    }
    expect(await machine.ship(log)).toMatchObject({ state: 'shipped', alarms: [] });
    await everySegmentOnce(log);
  });

  it('kill -9 of the database while a segment is stored: busy, and all shipped when it is back, with the vault that was up', async () => {
    const log = await long('database-killed', 3);
    let puts = 0;
    let crash: Promise<void> | undefined;
    way.before = async (passing) => {
      if (!isPut(passing) || ++puts !== 2) return;
      crash = new Promise((resolve) => setTimeout(resolve, 10)).then(() => vault.crashDatabase());
      if (puts > 2) await crash;
    };
    const report = await machine.ship(log);
    await crash;
    expect(report).toMatchObject({ state: 'offline', alarms: [], problem: expect.any(String) as string });
    way.honest();
    await vault.startDatabase();
    await until('it goes on by itself', async () => (await machine.ship(log)).state === 'shipped');
    await everySegmentOnce(log);
  });

  it('what is durable and not published: 202, no receipt, nothing counts; the receipt is fetched later and nothing is sent again', async () => {
    const log = machine.log('held-back');
    await log.prompts(2).seal();
    await vault.unpublished(async () => {
      expect(await machine.ship(log, { receiptWaitMs: 200 })).toMatchObject({ state: 'pending', acknowledged: 0 });
    });
    expect(way.puts.map(({ status }) => status)).toEqual([202]);
    expect(machine.counts(log.session)).toEqual([]);
    await until('it is shipped', async () => (await machine.ship(log)).state === 'shipped');
    expect(way.puts.filter(({ path }) => path.endsWith('/0')).length).toBe(1);
    await everySegmentOnce(log);
  });
});
