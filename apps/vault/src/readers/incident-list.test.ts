import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { IncidentList, type Incident } from '@nd7/vault-api';
import { TestSession, type TestMachine } from '../testing/session.fixture.js';
import { TestWorld } from '../testing/vault.fixture.js';

let world: TestWorld;
let machine: TestMachine;
let reader: { authorization: string };

beforeAll(async () => {
  world = await TestWorld.make({ env: { ND7_VAULT_WATCH_EVERY: '3600' } });
  await world.team('acme');
  await world.replica();
  machine = await world.machine('acme');
  reader = { authorization: `Bearer ${(await world.reader('acme')).token}` };
  // Three tails that shrink, two of which grow again.
  for (const id of ['a', 'b', 'c']) {
    const session = new TestSession(machine.key, id).start().seal().more(2);
    for (const entries of [5, 3]) await machine.beat({ sessions: [session.named(entries)] });
    if (id !== 'b') await machine.beat({ sessions: [session.named(5)] });
    await world.replicas[0]?.look();
  }
}, 60_000);

afterAll(() => world.close());

const list = async (query = ''): Promise<IncidentList> =>
  IncidentList.parse((await machine.fetch('GET', `/v1/incidents${query}`, { headers: reader })).json);
const sessions = (all: readonly Incident[]): (string | undefined)[] => all.map((one) => one.session);

describe('the list of incidents', () => {
  it('is newest first, says how many are open, and shows by state', async () => {
    const all = await list();
    expect([sessions(all.incidents), all.open, all.next_cursor]).toEqual([['c', 'b', 'a'], 1, undefined]);
    expect(sessions((await list('?state=open')).incidents)).toEqual(['b']);
    expect(sessions((await list('?state=over')).incidents)).toEqual(['c', 'a']);
  });

  it('comes in pages that neither repeat nor miss one', async () => {
    const seen: (string | undefined)[] = [];
    let cursor: string | undefined;
    do {
      const page = await list(`?limit=1${cursor === undefined ? '' : `&cursor=${cursor}`}`);
      expect([page.incidents.length, page.open]).toEqual([1, 1]);
      seen.push(...sessions(page.incidents));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(['c', 'b', 'a']);
  });

  it.each([
    'limit=0',
    'limit=201',
    'state=closed',
    'cursor=x',
    ...['[1]', '[1,2]', '["a","b"]', '[1e99,"b"]', '[-1,"b"]', '[8e15,"b"]', '[1,"\\u0000"]', '{}', 'null'].map(
      (text) => `cursor=${Buffer.from(text).toString('base64url')}`,
    ),
  ])('refuses %s', async (query) => {
    const answer = await machine.fetch('GET', `/v1/incidents?${query}`, { headers: reader });
    expect([answer.status, answer.json['code']]).toEqual([400, 'bad-request']);
  });

  it('shows each by its id with what was seen and how it ended', async () => {
    const [newest] = (await list('?state=over&limit=1')).incidents;
    const one = await machine.fetch('GET', `/v1/incidents/${String(newest?.id)}`, { headers: reader });
    expect(one.json).toEqual(newest);
    expect(newest).toMatchObject({ kind: 'tail-shrank', count: 3, seen: { was: 5 }, over: { why: 'regrown' } });
  });
});

describe('what was raised', () => {
  it('and its end cannot be changed or taken away', async () => {
    for (const table of ['incident', 'incident_change', 'heartbeat']) {
      const name = world.owner(`nd7.${table}`);
      await expect(world.owner`delete from ${name}`).rejects.toThrow('evidence is only added');
      await expect(world.owner`update ${name} set team = team`).rejects.toThrow('evidence is only added');
      await expect(world.owner`truncate ${name} cascade`).rejects.toThrow('evidence is only added');
    }
  });
});
