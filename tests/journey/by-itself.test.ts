// The recorder of an enrolled machine ships by itself, and `nd7 ship --follow` shows it; the vault and its PostgreSQL are real, nobody types `nd7 ship`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseReceipt } from '@nd7/receipt';
import { Desk } from './desk.fixture.js';
import { RealVault, until } from './real-vault.fixture.js';

let vault: RealVault;
let desk: Desk;
beforeAll(async () => {
  vault = await RealVault.start();
  desk = new Desk();
  await desk.enrol(vault);
});
afterAll(async () => {
  await desk.remove();
  await vault.stop();
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The receipts on the disk, in the order of entries; `received` by the clock of the vault, which is this machine's. */
function receipts(session: string) {
  const folder = join(desk.home, 'sessions', session, 'receipts');
  return readdirSync(folder)
    .flatMap((name) => (/^[0-9]+\.tlog-proof$/.test(name) ? [parseReceipt(readFileSync(join(folder, name)))] : []))
    .map((receipt) => ({ ...receipt!.statement, received: Date.parse(receipt!.statement.received) }))
    .sort((a, b) => a.from - b.from);
}

/** Milliseconds from the oldest prompt of each segment to the vault's having it. */
function lags(session: string): number[] {
  const entries = desk.entries(session);
  return receipts(session).flatMap(({ from, to, received }) =>
    entries
      .slice(from, to)
      .filter(({ kind }) => kind === 'prompt')
      .slice(0, 1)
      .map(({ time }) => received - Date.parse(time)),
  );
}

const middle = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Infinity;

describe('the recorder of an enrolled machine', () => {
  it('has entry 0 with its first seal at the vault before any tool call', async () => {
    await desk.say('first', 'SessionStart', { source: 'startup' });
    await until('the first key is pinned', () => desk.receipted('first') > 0);
    expect(desk.entries('first').map(({ kind }) => kind)).not.toContain('tool.before');
    const [pin] = receipts('first');
    expect(desk.entries('first')[pin!.to - 1]?.kind).toBe('seal');
    expect(pin!.from).toBe(0);
  });

  it.each([
    ['that runs', false],
    ['that this very call starts', true],
  ])(
    'holds a session’s first tool call back until the receipt that pins its key is there: one %s',
    async (_, isNew) => {
      const wasPinned: boolean[] = [];
      // The call waits for half a second and no longer: on a machine that is loaded it may win.
      for (let i = 0; i < 8 && !wasPinned.includes(true); i++) {
        const session = `at-once-${i}-${isNew ? 'new' : 'old'}`;
        if (isNew) await desk.stopRecorder();
        await desk.call(session);
        const answered = desk.entries(session).find(({ kind }) => kind === 'tool.after')!;
        await desk.untilShipped(session);
        wasPinned.push((receipts(session)[0]?.received ?? Infinity) <= Date.parse(answered.time));
      }
      expect(wasPinned).toContain(true);
    },
  );

  it('ships an entry within 2 s, each cut sealed, and seals no oftener than that', async () => {
    const measured = async (session: string) => {
      await desk.say(session, 'SessionStart', { source: 'startup' });
      for (let i = 0; i < 4; i++) {
        await desk.untilShipped(session);
        await pause(2_100);
        await desk.say(session, 'UserPromptSubmit', { prompt: `alone ${i}` });
      }
      await desk.untilShipped(session);
      const alone = middle(lags(session));
      const [cuts, began] = [receipts(session).length, performance.now()];
      while (performance.now() - began < 8_000) {
        await desk.say(session, 'UserPromptSubmit', { prompt: 'steady' });
        await pause(150);
      }
      await desk.untilShipped(session);
      const all = receipts(session);
      for (const { to } of all) expect(desk.entries(session)[to - 1]?.kind).toBe('seal');
      // The last cut comes up to 2 s after the last entry, and one may have been due when the first came.
      expect(all.length - cuts).toBeLessThanOrEqual((performance.now() - began) / 2_000 + 2);
      return { alone, steady: middle(lags(session).slice(4)) };
    };
    // By the recorder's time of the entry and the vault's of the segment. Under steady shipping the seal may have to wait for 2 s, and the way is to be added.
    const isInTime = ({ alone, steady }: { alone: number; steady: number }) => alone <= 2_000 && steady <= 2_500;
    let found = await measured('steady');
    // Once more where the machine was busy with other things.
    if (!isInTime(found)) found = await measured('steady-again');
    expect(isInTime(found) ? 'in time' : found).toBe('in time');
  });
});
