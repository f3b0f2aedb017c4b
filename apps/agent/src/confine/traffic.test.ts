// What went through connections: told one by one, and in sums where a program floods; no byte is missing from the whole.
import type { EndedConnection } from '@nd7/egress';
import { Traffic } from './traffic.js';

type Said = Record<string, unknown>;
const end = (more: Partial<EndedConnection> = {}): EndedConnection => ({
  connection: 1,
  via: 'connect',
  host: 'a.test',
  port: 443,
  asker: undefined,
  sent: 10,
  received: 20,
  ms: 5,
  ...more,
});
const of = (call: string, pid: number): Partial<EndedConnection> => ({
  asker: { entry: { tied: 'process', tool_use_id: call, pid, program: 'curl' }, key: call },
});

let said: Said[];
let now: number;
let traffic: Traffic;
beforeEach(() => {
  said = [];
  now = 0;
  traffic = new Traffic(
    (_kind, data) => {
      said.push(data);
      return Promise.resolve();
    },
    () => now,
  );
});

it('is told of each connection with who made it', () => {
  traffic.ended(end({ connection: 7, ...of('call-1', 12) }));
  traffic.ended(end({ connection: null, via: 'endpoint', sent: null, received: null }));
  expect(said).toEqual([
    {
      ...{ via: 'connect', host: 'a.test', port: 443, connection: 7, sent: 10, received: 20, ms: 5 },
      ...{ tied: 'process', tool_use_id: 'call-1', pid: 12, program: 'curl' },
    },
    { via: 'endpoint', host: 'a.test', port: 443, sent: null, received: null, ms: 5 },
  ]);
});

it('is told in sums of a hundred thousand, by host and call, and all bytes are in them', async () => {
  for (let i = 0; i < 100_000; i++) traffic.ended(end({ connection: i, ms: i, ...of(`call-${i % 2}`, i) }));
  await traffic.flush();
  const sums = said.filter(({ connections }) => connections !== undefined);
  expect(said.length).toBe(202);
  expect(sums).toEqual(
    [0, 1].map((call) => ({
      ...{ via: 'connect', host: 'a.test', port: 443, tied: 'process', tool_use_id: `call-${call}` },
      ...{ connections: 49_900, sent: 499_000, received: 998_000, ms: 99_998 + call },
    })),
  );
});

it('has one sum for what is beyond so many hosts, and says how many are not known', async () => {
  for (let i = 0; i < 1_000; i++)
    traffic.ended(end({ host: `${i}.test`, ...(i >= 998 && { sent: null, received: null }) }));
  await traffic.flush();
  expect(said.length).toBe(200 + 64 + 1);
  expect(said.at(-1)).toEqual({ host: null, connections: 736, sent: 7_340, received: 14_680, lost: 2, ms: 5 });
});

it('is told one by one again after a while', () => {
  for (let i = 0; i < 300; i++) traffic.ended(end());
  expect(said.length).toBe(200);
  now = 1_100;
  for (let i = 0; i < 10; i++) traffic.ended(end());
  expect(said.length).toBe(202);
});
