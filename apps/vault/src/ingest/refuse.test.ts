import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPair } from '@nd7/signing';
import { toHex, utf8 } from '@nd7/entry';
import { certMessage } from '@nd7/chain';
import { compress } from './frame.js';
import { TestSession, type Answer, type Cut, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let n = 0;
const fresh = (): TestSession => new TestSession(machine.key, `r-${String((n += 1))}`);

beforeAll(async () => {
  world = await TestWorld.make();
  await world.team('acme');
  await world.replica();
  machine = await world.machine('acme');
}, 60_000);

afterAll(() => world.close());

/** The cut that really is in the bytes, under the machine's signature. */
const cutOf = (session: TestSession, over: Partial<Cut> = {}): Cut => ({ ...session.cut(0), ...over });
const zeros = '0'.repeat(64);

/** What is answered, and what the answer must name. */
type Row = [what: string, code: string, status: number, extra: Record<string, unknown>, make: () => Promise<Answer>];

const rows: Row[] = [
  [
    'no claim',
    'bad-claim',
    422,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { headers: { 'nd7-claim': '' } }),
  ],
  [
    'a claim that is no base64',
    'bad-claim',
    422,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { headers: { 'nd7-claim': '!' } }),
  ],
  [
    'a claim of another origin',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, s.cut(0), { claim: machine.claim(s.id, s.cut(0), { origin: 'vault.test/other' }) });
    },
  ],
  [
    'a claim of another machine',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, s.cut(0), {
        claim: machine.claim(s.id, s.cut(0), { machine: generateKeyPair().publicKey }),
      });
    },
  ],
  [
    'a claim of another session',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, s.cut(0), { claim: machine.claim(`${s.id}x`, s.cut(0)) });
    },
  ],
  [
    'a claim from elsewhere than the route',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, s.cut(0), { path: `/v1/sessions/${s.id}/segments/1` });
    },
  ],
  [
    'a claim with a bad signature',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      const claim = machine.claim(s.id, s.cut(0));
      return machine.ship(s.id, s.cut(0), { claim: { ...claim, signature: `A${claim.signature.slice(1)}` } });
    },
  ],
  [
    'an encoding it does not know',
    'bad-encoding',
    400,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { headers: { 'content-encoding': 'gzip' } }),
  ],
  [
    'no frame',
    'bad-frame',
    400,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { body: utf8('no frame at all') }),
  ],
  [
    'a session id in the path that is none',
    'bad-request',
    400,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { path: '/v1/sessions/.x/segments/0' }),
  ],
  [
    'a number in the path that is none',
    'bad-request',
    400,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { path: '/v1/sessions/x/segments/01' }),
  ],
  [
    'more than 8 MiB as sent',
    'too-large',
    413,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { body: Buffer.alloc(9 * 1024 * 1024), plain: true }),
  ],
  [
    'more than 8 MiB when decompressed',
    'too-large',
    413,
    {},
    async () =>
      machine.ship('x', cutOf(fresh().start().seal()), { body: await compress(Buffer.alloc(9 * 1024 * 1024)) }),
  ],
  [
    'more than 4,096 entries',
    'too-large',
    413,
    {},
    async () => machine.ship('x', cutOf(fresh().start().seal()), { body: await compress(Buffer.alloc(4097, '\n')) }),
  ],
  [
    'a torn tail',
    'torn-tail',
    422,
    { bad_entry: 1, reason: 'torn-tail' },
    async () => {
      const s = fresh().start().seal();
      const bytes = s.cut(0).bytes;
      return machine.ship(s.id, cutOf(s, { bytes: bytes.subarray(0, bytes.length - 1) }));
    },
  ],
  [
    'bytes that are not UTF-8',
    'not-utf8',
    422,
    { bad_entry: 1 },
    async () =>
      shipped(
        fresh()
          .start()
          .raw(Buffer.from([0x7b, 0xff, 0x7d]))
          .seal(),
      ),
  ],
  [
    'bytes that are not JSON',
    'bad-json',
    422,
    { bad_entry: 1 },
    async () => shipped(fresh().start().raw(utf8('{"v":1,')).seal()),
  ],
  [
    'a key twice',
    'duplicate-key',
    422,
    { bad_entry: 1 },
    async () =>
      shipped(
        spoil(fresh().start().add(), (line) => line.replace('{"tool_name"', '{"a":1,"\\u0061":2,"tool_name"')).seal(),
      ),
  ],
  [
    'another version',
    'unsupported-version',
    422,
    { bad_entry: 1 },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('{"v":1,', '{"v":2,')).seal()),
  ],
  [
    'another prefix',
    'bad-prefix',
    422,
    { bad_entry: 1 },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('"seq":1', '"seq": 1')).seal()),
  ],
  [
    'another number',
    'wrong-seq',
    422,
    { bad_entry: 1 },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('"seq":1', '"seq":2')).seal()),
  ],
  [
    'another link',
    'wrong-prev',
    422,
    { bad_entry: 1 },
    async () =>
      shipped(
        spoil(fresh().start().add(), (line) =>
          line.replace(/"prev":"./, (m) => `${m.slice(0, -1)}${m.endsWith('0') ? '1' : '0'}`),
        ).seal(),
      ),
  ],
  [
    'the bytes of another session',
    'wrong-genesis',
    422,
    { bad_entry: 0 },
    async () => {
      const s = fresh().start().seal();
      return machine.ship('stolen', s.cut(0));
    },
  ],
  [
    'a seal by another key',
    'bad-seal',
    422,
    { bad_entry: 1 },
    async () =>
      shipped(
        spoil(fresh().start().seal(), (line) =>
          line.replace(/"sig":"../, (m) => `${m.slice(0, -2)}${m.endsWith('00') ? '11' : '00'}`),
        ),
      ),
  ],
  [
    'fewer entries than claimed',
    'truncated',
    422,
    { bad_entry: 2, reason: 'truncated' },
    async () => {
      const s = fresh().start().seal().more(1);
      return machine.ship(s.id, { ...s.cut(0), bytes: s.cut(0, 2).bytes });
    },
  ],
  [
    'more entries than claimed',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal().more(1);
      return machine.ship(s.id, { ...s.cut(0, 2), bytes: s.cut(0).bytes });
    },
  ],
  [
    'another head than claimed',
    'head-mismatch',
    422,
    { bad_entry: 1, reason: 'head-mismatch' },
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, cutOf(s, { head: zeros }));
    },
  ],
  [
    'a claim whose prev is not the genesis link',
    'bad-claim',
    422,
    {},
    async () => {
      const s = fresh().start().seal();
      return machine.ship(s.id, cutOf(s, { prev: zeros }));
    },
  ],
  [
    'an entry without time',
    'bad-member',
    422,
    { bad_entry: 1, reason: 'time' },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('"time":"2026-', '"time":"2026/')).seal()),
  ],
  [
    'an entry of an unknown class',
    'bad-member',
    422,
    { bad_entry: 1, reason: 'source' },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('intent:', 'intents:')).seal()),
  ],
  [
    'an entry with a bad kind',
    'bad-member',
    422,
    { bad_entry: 1, reason: 'kind' },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace('tool.before', 'Tool.before')).seal()),
  ],
  [
    'an entry whose data is no object',
    'bad-member',
    422,
    { bad_entry: 1, reason: 'data' },
    async () => shipped(spoil(fresh().start().add(), (line) => line.replace(/"data":.*/, '"data":[]}')).seal()),
  ],
  ['a last entry that is no seal', 'unsealed', 422, { bad_entry: 1 }, async () => shipped(fresh().start().add())],
  [
    'an entry 0 without a key',
    'unsealed',
    422,
    { bad_entry: 0 },
    async () => shipped(fresh().start({ key: undefined, cert: undefined }).add()),
  ],
  [
    'an entry 0 of another machine',
    'bad-machine',
    422,
    { bad_entry: 0 },
    async () => {
      const other = generateKeyPair();
      const s = fresh();
      const cert = toHex(other.sign(certMessage(s.id, s.firstKey)));
      return shipped(s.start({ machine: other.publicKey, cert }).seal());
    },
  ],
];

/** Spoils the newest line; what comes after links to the spoiled one. */
function spoil(session: TestSession, change: (line: string) => string): TestSession {
  const line = Buffer.from(session.lines.pop() as Uint8Array).toString('utf8');
  session.heads.pop();
  return session.respell(utf8(change(line)));
}

const shipped = (session: TestSession): Promise<Answer> => machine.ship(session.id, session.cut(0));

describe('a segment is refused, and nothing of it is kept', () => {
  it.each(rows)('%s: %s', async (_what, code, status, extra, make) => {
    const answer = await make();
    expect({ status: answer.status, ...answer.json }).toMatchObject({ status, code, ...extra });
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(String(answer.json['detail']).length).toBeGreaterThan(10);
  });

  it('leaves no row behind', async () => {
    const [row] =
      await world.owner`select (select count(*) from nd7.session)::int as sessions, (select count(*) from nd7.segment)::int as segments, (select count(*) from nd7.body)::int as bodies`;
    expect(row).toEqual({ sessions: 0, segments: 0, bodies: 0 });
  });
});
