// `nd7 ship --follow` as a person sees it, with a real vault: beside the recorder that ships, and where none runs.
import { Desk, type Shipped } from './desk.fixture.js';
import { RealVault, until } from './real-vault.fixture.js';

let vault: RealVault;
let desk: Desk;
beforeAll(async () => {
  vault = await RealVault.start();
});
beforeEach(async () => {
  desk = new Desk();
  await desk.enrol(vault);
});
afterEach(async () => {
  await desk.remove();
});
afterAll(async () => {
  await vault.stop();
});

interface Told extends Shipped {
  segments?: { from: number; to: number }[];
}
const told = (output: string): Told[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Told);

/** Every receipt of the session has been told once, in order, from the first entry on. */
function tellsEachOnce(all: readonly Told[], session: string): void {
  const segments = all.flatMap((one) => (one.session === session ? (one.segments ?? []) : []));
  expect(segments.map(({ from }) => from)).toEqual([0, ...segments.map(({ to }) => to)].slice(0, -1));
  expect(segments.at(-1)?.to).toBe(desk.receipted(session));
}

it('shows what the recorder ships as it happens, that the vault is away, and that it goes on; Ctrl-C ends it with 0', async () => {
  const watch = desk.watch('ship', '--follow');
  await watch.says(/shipping to http:\S+; Ctrl-C ends it\n/);
  await desk.say('s', 'SessionStart', { source: 'startup' });
  await watch.says(/✓ s {2}\d+ of \d+ entries under receipts that hold, \d segments? now\n/);
  await desk.untilShipped('s');
  await vault.kill();
  await desk.call('s');
  await watch.says(/… s {2}\d+ of \d+ entries under receipts; queued: cannot reach http:/);
  const away = watch.output.length;
  await vault.serve();
  await until('it is shipped', () => desk.receipted('s') === desk.entries('s').length);
  await until('that is told', () => watch.output.slice(away).includes('under receipts that hold'));
  const { code, output } = await watch.interrupt();
  expect(output).toMatch(/\neverything recorded is under a receipt\n$/);
  expect(code).toBe(0);
});

it('with --json tells each segment once, and ends with SIGTERM: 1 while the vault is away; nothing is lost', async () => {
  const watch = desk.watch('ship', '--follow', '--json');
  for (let i = 0; i < 3; i++) {
    await desk.call('s');
    await desk.call('t');
    for (const session of ['s', 't']) await desk.untilShipped(session);
  }
  const upTo = (session: string) => new RegExp(`"session":"${session}"[^\n]*"to":${String(desk.receipted(session))},`);
  for (const session of ['s', 't']) await watch.says(upTo(session));
  for (const session of ['s', 't']) tellsEachOnce(told(watch.stdout), session);
  // Another recorder comes: what the first one shipped at last is told too, and nothing twice.
  await desk.call('t');
  await desk.untilShipped('t');
  await desk.stopRecorder();
  await watch.says(upTo('t'));
  await desk.call('t');
  await desk.untilShipped('t');
  await watch.says(upTo('t'));
  tellsEachOnce(told(watch.stdout), 't');
  await vault.kill();
  await desk.call('s');
  await watch.says(/"state":"offline"/);
  const { code } = await watch.interrupt('SIGTERM');
  expect(code).toBe(1);
  expect(told(watch.stdout).at(-1)).toMatchObject({ session: 's', state: 'offline' });
  await vault.serve();
  await desk.untilShipped('s');
  expect((await desk.nd7(['verify', 's', '--receipts'])).code).toBe(0);
  await vault.checkAll();
});

it('where no recorder runs ships itself, what it finds and what comes; what is cut short is shipped by the next', async () => {
  await desk.stopRecorder();
  await desk.sayAlone('s');
  const watch = desk.watch('ship', '--follow', '--json');
  await watch.says(/"session":"s"[^\n]*"state":"shipped"/);
  await desk.sayAlone('s');
  await desk.sayAlone('late');
  await watch.says(/"session":"late"[^\n]*"state":"shipped"/);
  for (const session of ['s', 'late']) await desk.untilShipped(session);
  for (const session of ['s', 'late'])
    await watch.says(new RegExp(`"session":"${session}"[^\n]*"to":${String(desk.receipted(session))},`));
  for (const session of ['s', 'late']) tellsEachOnce(told(watch.stdout), session);
  await vault.kill();
  await desk.sayAlone('s');
  await watch.says(/"state":"offline"/);
  const struck = performance.now();
  const { code, output } = await watch.interrupt();
  expect(code).toBe(1);
  expect(output).not.toMatch(/abort/i);
  expect(performance.now() - struck).toBeLessThan(30_000);
  await vault.serve();
  const before = desk.receipted('s');
  expect(await desk.json('ship')).toMatchObject({ exit: 0, sessions: [{ session: 's', state: 'shipped' }] });
  expect(desk.receipted('s')).toBeGreaterThan(before);
  expect((await desk.nd7(['verify', 's', '--receipts'])).code).toBe(0);
});

it('of sessions that are named shows those only; ends with 1 where one cannot be shipped, and says that once', async () => {
  await desk.stopRecorder();
  await desk.sayAlone('mine');
  await desk.sayAlone('other');
  expect((await desk.nd7(['ship', 'mine'])).code).toBe(0);
  await vault.admin('machine', 'revoke', desk.machine, '--team', 'acme');
  await desk.sayAlone('mine');
  const watch = desk.watch('ship', '--follow', 'mine');
  await watch.says(/✗ mine {2}refused: .*\n {2}Nothing was removed/);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const { code, output } = await watch.interrupt();
  expect(code).toBe(1);
  expect(output).not.toContain('other');
  expect(output.split('refused').length - 1).toBe(1);
  expect(output).toContain('entries of 1 session have no receipt yet; they are kept');
});
