// What `nd7 status` and `nd7 doctor` say of shipping: what is not shipped and for how long, the last receipt, a vault that is away.
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

it('says that everything is shipped, what waits and since when while the vault is away, and the last receipt', async () => {
  await desk.call('s');
  await desk.untilShipped('s');
  const held = desk.receipted('s');
  const shipped = await desk.json('status');
  expect(shipped).toMatchObject({
    exit: 0,
    enrolled: true,
    sessions: 1,
    unshipped: { entries: 0, sessions: 0, seconds: 0 },
    last_receipt: { session: 's', entries: held },
    recorder: { sessions: [{ session: 's', entries: held, sealed_to: held - 1 }] },
  });
  expect((await desk.nd7(['status'])).stdout).toMatch(
    /Vault {6}everything is shipped; last receipt .* \(s, \d+ entries\)/,
  );
  const fired = (shipped['hooks'] as { event: string }[]).map(({ event }) => event);
  expect(fired.sort()).toEqual(['PostToolUse', 'PreToolUse']);

  await vault.kill();
  await desk.call('s');
  await until('it has waited for a second', async () => {
    const { seconds } = (await desk.json('status'))['unshipped'] as { seconds: number };
    return seconds > 0;
  });
  const waiting = await desk.json('status');
  expect(waiting).toMatchObject({ exit: 0, unshipped: { sessions: 1 }, last_receipt: { session: 's', entries: held } });
  const { entries } = waiting['unshipped'] as { entries: number };
  expect(entries).toBe(desk.entries('s').length - held);
  expect(entries).toBeGreaterThanOrEqual(2);
  await until('why', async () => (await desk.nd7(['status'])).stdout.includes('cannot reach http://127.0.0.1'));
  expect((await desk.nd7(['status'])).stdout).toMatch(/\d+ entries of 1 session not shipped, for \d+ s; last receipt/);

  await vault.serve();
  await desk.untilShipped('s');
  expect(await desk.json('status')).toMatchObject({
    unshipped: { entries: 0 },
    last_receipt: { entries: desk.receipted('s') },
  });
});
