import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifySession } from '@nd7/verify';
import { createKernel } from '@nd7/blake3';
import { verifySignatures } from '@nd7/signing';
import { parseVkey, type VerifierKey } from '@nd7/tlog';
import { SessionList, SessionPage } from '@nd7/vault-api';
import { inflate } from '../ingest/frame.js';
import { TestSession, type Answer, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let key: VerifierKey;
let token: string;

const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  machine.fetch('GET', path, { headers: { authorization: `Bearer ${token}`, ...headers } });

beforeAll(async () => {
  world = await TestWorld.make();
  key = parseVkey((await world.team('acme')).vkey) as VerifierKey;
  await world.replica();
  machine = await world.machine('acme', 'Ada’s laptop');
  token = (await world.reader('acme')).token;
  for (let i = 0; i < 7; i += 1) {
    const session = new TestSession(machine.key, `list-${String(i)}`)
      .start({ agent: i % 2 === 0 ? 'codex' : 'claude-code' })
      .more(i);
    await machine.ship(session.id, session.cut(0));
    if (i === 3) await machine.close(session.id, session.count, session.heads.at(-1) as string);
  }
}, 60_000);

afterAll(() => world.close());

describe('the list of sessions', () => {
  it('is in the form of the contract, newest first, with what may be said in clear', async () => {
    const list = SessionList.parse((await get('/v1/sessions')).json);
    expect(list.sessions.map((one) => one.session)).toEqual([
      'list-6',
      'list-5',
      'list-4',
      'list-3',
      'list-2',
      'list-1',
      'list-0',
    ]);
    expect(list.sessions[0]).toMatchObject({
      machine_name: 'Ada’s laptop',
      agent: 'codex',
      entries: 8,
      segments: 1,
      state: 'open',
      incidents: 0,
      counts: { intent: 6, effect: 0, decision: 0, recorder: 2, unclassified: 0 },
    });
    expect(list.sessions[0]?.started).toBe('2026-11-29T19:41:00.010Z');
  });

  it('comes in pages that neither repeat nor miss a row, whatever is added meanwhile', async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = SessionList.parse(
        (await get(`/v1/sessions?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)).json,
      );
      seen.push(...page.sessions.map((one) => one.session));
      cursor = page.next_cursor;
      if (seen.length === 2) {
        const late = new TestSession(machine.key, 'late').start().seal();
        await machine.ship(late.id, late.cut(0));
      }
    } while (cursor !== undefined);
    expect(seen).toEqual(['list-6', 'list-5', 'list-4', 'list-3', 'list-2', 'list-1', 'list-0']);
  });

  it.each([
    ['state=closed', ['list-3']],
    ['agent=claude-code&limit=200', ['late', 'list-5', 'list-3', 'list-1']],
    [`machine=${'0'.repeat(64)}`, []],
  ])('filters by %s', async (query, names) => {
    expect(SessionList.parse((await get(`/v1/sessions?${query}`)).json).sessions.map((one) => one.session)).toEqual(
      names,
    );
  });

  it.each([
    'limit=0',
    'limit=x',
    'state=lost',
    'cursor=x',
    'machine=x',
    `cursor=${Buffer.from('[1]').toString('base64url')}`,
  ])('refuses %s', async (query) => {
    const answer = await get(`/v1/sessions?${query}`);
    expect([answer.status, answer.json['code']]).toEqual([400, 'bad-request']);
  });
});

describe('a session', () => {
  it('can be verified from what the vault serves alone: bytes, receipts and the pinned key', async () => {
    const session = new TestSession(machine.key, 'whole').start().seal().more(2).more(3);
    for (const [from, to] of [
      [0, 2],
      [2, 5],
      [5, 9],
    ] as const)
      await machine.ship(session.id, session.cut(from, to));
    const at = `/v1/machines/${machine.key.publicKey}/sessions/whole`;
    let page = SessionPage.parse((await get(at)).json);
    while (page.segments.some((one) => !one.receipt)) page = SessionPage.parse((await get(at)).json);
    expect(page.segments.map((one) => [one.from, one.to, one.head])).toEqual([
      [0, 2, session.heads[2]],
      [2, 5, session.heads[5]],
      [5, 9, session.heads[9]],
    ]);
    const parts: string[] = [];
    const receipts: string[] = [];
    for (const { from } of page.segments) {
      parts.push((await get(`${at}/segments/${String(from)}/body`, { 'accept-encoding': 'identity' })).text);
      receipts.push((await get(`${at}/segments/${String(from)}/receipt`)).text);
    }
    const report = await verifySession({
      session: 'whole',
      bytes: Buffer.from(parts.join('')),
      receipts,
      trust: { keys: [key] },
      kernel: createKernel(),
      verify: verifySignatures,
    });
    expect(report).toMatchObject({
      verdict: 'intact',
      entries: 9,
      seals: { sealed_to: 8, tail: 0, first_key: 'pinned' },
    });
    expect(report.receipts.map((one) => one.result)).toEqual(['holds', 'holds', 'holds']);
  });

  it('is sent as it came to whoever reads zstd', async () => {
    const path = `/v1/machines/${machine.key.publicKey}/sessions/list-2/segments/0/body`;
    const response = await fetch(`${machine.url}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'zstd' },
    });
    expect(response.headers.get('content-encoding')).toBe('zstd');
    const frame = Buffer.from(await response.arrayBuffer());
    const plain = (await get(path, { 'accept-encoding': 'identity' })).text;
    expect((await inflate(frame, Buffer.byteLength(plain))).toString('utf8')).toBe(plain);
  });

  it('whose stored body was changed or is missing is not shown, and says which', async () => {
    const path = `/v1/machines/${machine.key.publicKey}/sessions/list-4/segments/0/body`;
    await world.owner`alter table nd7.body disable trigger refuse_change`;
    await world.owner`update nd7.body set piece = set_byte(piece, 40, get_byte(piece, 40) # 1) where place = 0 and hash = (select body from nd7.segment where session = 'list-4')`;
    const changed = await get(path);
    expect([changed.status, changed.json['code']]).toEqual([500, 'internal']);
    await world.owner`delete from nd7.body where hash = (select body from nd7.segment where session = 'list-4')`;
    expect((await get(path)).json['detail']).toContain('missing');
    await world.owner`alter table nd7.body enable always trigger refuse_change`;
    expect(world.logged.filter((line) => line.includes('cannot be opened'))).toHaveLength(2);
  });

  it('whose key was destroyed keeps its chain and receipts, not its content', async () => {
    const session = new TestSession(machine.key, 'erased').start().seal();
    await machine.ship(session.id, session.cut(0));
    await world.owner`alter table nd7.data_key disable trigger refuse_change`;
    await world.owner`delete from nd7.data_key where session = 'erased'`;
    await world.owner`alter table nd7.data_key enable always trigger refuse_change`;
    const fresh = await world.replica({ ND7_VAULT_SIGNER_STATE: `${world.folder}/another-signer` }); // a replica that never held the key
    const at = `/v1/machines/${machine.key.publicKey}/sessions/erased`;
    const answer = await fetch(`${fresh.url}${at}/segments/0/body`, { headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
      404,
      expect.stringContaining('erased'),
    ]);
    expect((await get(at)).status).toBe(200);
  });
});

describe('machines', () => {
  it('are listed with their name, which stands where it can be erased', async () => {
    expect((await get('/v1/machines')).json['machines']).toMatchObject([
      { machine: machine.key.publicKey, name: 'Ada’s laptop' },
    ]);
    const leaves = await world.owner`select 1 from nd7.log_queue where statement like '%laptop%'`;
    expect(leaves).toHaveLength(0);
  });
});
