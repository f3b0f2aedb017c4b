// Who made a connection, where what is told comes early, late, twice or never. With real processes: tests/boundary/callers.test.ts.
import type { Connected } from '@nd7/confine';
import { Callers, type CallersParts } from './callers.js';

const PROXY = { address: '127.0.0.1', port: 3128 };
const ends = (port: number, address = '127.0.0.1') => ({ from: { address, port }, to: PROXY });
const [INIT, AGENT, KEEPER] = [10, 20, 30].map((pid) => ({ pid, start: String(pid) })) as [P, P, P];
type P = { pid: number; start: string };
const self = (pid: number): P => ({ pid, start: '99' });
const told = (port: number, line: P[]): Connected => ({ ...ends(port), line, program: 'curl' });

function callers(more: Partial<CallersParts> = {}): Callers {
  const made = new Callers({ isTold: true, above: 1, calls: { only: 'call-2' }, ...more });
  made.ownerIn = (line) =>
    Promise.resolve(line.some(({ pid }) => pid === KEEPER.pid) ? { command: 'c-1', call: 'call-1' } : undefined);
  // A hook of the agent: below it, and above all the launcher.
  made.spoke([self(50), AGENT, INIT, { pid: 1, start: '1' }]);
  return made;
}

it('is the call in whose tree the process stands, whatever call is open', async () => {
  const all = callers();
  all.connected(told(1, [self(40), KEEPER, INIT]));
  expect((await all.askerOf(ends(1))).entry).toEqual({
    ...{ tied: 'process', tool_use_id: 'call-1', command: 'c-1', pid: 40, program: 'curl' },
  });
});

it('is the one open call for what stands below the agent, and none for a stray', async () => {
  const all = callers();
  all.connected(told(1, [self(40), AGENT, INIT]));
  all.connected(told(2, [self(41), self(42), INIT]));
  expect(await all.askerOf(ends(1))).toMatchObject({ tied: 'hooks', call: 'call-2', isStray: false });
  expect(await all.askerOf(ends(2))).toMatchObject({ tied: 'none', call: undefined, isStray: true });
});

it('waits for what is told late, and holds each word for one connection', async () => {
  const all = callers();
  const asked = all.askerOf(ends(1));
  setTimeout(() => all.connected(told(1, [self(40), KEEPER, INIT])), 50);
  expect(await asked).toMatchObject({ tied: 'process' });
  // The same end again, of which nothing was told: it could be anybody's.
  expect(await all.askerOf(ends(1))).toMatchObject({ entry: { tied: 'none' }, isStray: true });
});

it('believes the last word of an end, and none that is older than a port that was taken', async () => {
  const all = callers();
  all.connected(told(1, [self(40), AGENT, INIT]));
  all.connected(told(1, [self(41), KEEPER, INIT]));
  expect(await all.askerOf(ends(1))).toMatchObject({ entry: { pid: 41 } });
  all.connected(told(2, [self(40), KEEPER, INIT]));
  all.connected({ ...told(2, []), from: { address: '0.0.0.0', port: 2 } });
  expect(await all.askerOf(ends(2))).toMatchObject({ entry: { tied: 'none' } });
});

it('is another one where the address is another', async () => {
  const all = callers();
  all.connected(told(1, [self(40), KEEPER, INIT]));
  expect(await all.askerOf(ends(1, '127.0.0.2'))).toMatchObject({ entry: { tied: 'none' } });
  expect(await all.askerOf(ends(1))).toMatchObject({ tied: 'process' });
});

it('is by the hooks alone, at once, where nobody makes the connections, and of datagrams', async () => {
  const began = performance.now();
  expect((await callers({ isTold: false }).askerOf(ends(1))).entry).toEqual({ tied: 'hooks', tool_use_id: 'call-2' });
  expect((await callers({ isTold: false, calls: undefined }).askerOf(ends(1))).entry).toEqual({ tied: 'none' });
  expect((await callers().askerOf({ ...ends(1), isDatagram: true })).entry).toMatchObject({ tied: 'hooks' });
  expect(performance.now() - began).toBeLessThan(500);
});
