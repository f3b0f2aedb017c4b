// The log over HTTP, on the whole service.
import { stopTestPostgres } from '@nd7/testing';
import { parseCheckpoint, parseNote, parseVkey, verifyNote } from '@nd7/tlog';
import { verifySignatures } from '@nd7/signing';
import { TestWorld, VAULT } from '../testing/vault.fixture.js';
import { until } from '../sequence/log.fixture.js';

afterAll(stopTestPostgres);

describe('the log over HTTP', () => {
  let world: TestWorld;
  let url: string;
  let vkey: string;
  let token: string;
  let stranger: string;

  beforeAll(async () => {
    world = await TestWorld.make();
    ({ vkey } = await world.team('acme'));
    await world.team('other');
    ({ url } = await world.replica());
    [token, stranger] = [(await world.reader('acme')).token, (await world.reader('other')).token];
    for (let i = 0; i < 3; i += 1) await world.machine('acme', `box ${String(i)}`);
    await until(async () =>
      ((await (await get('/v1/log')).json()) as { size: number }).size === 3 ? true : undefined,
    );
  }, 60_000);

  afterAll(() => world.close());

  const get = (path: string, as: string | undefined = token): Promise<Response> =>
    fetch(`${url}${path}`, as === undefined ? {} : { headers: { authorization: `Bearer ${as}` } });

  it('serves the checkpoint as a signed note that verifies', async () => {
    const answer = await get('/t/acme/checkpoint');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    const note = parseNote(await answer.text())!;
    expect(parseCheckpoint(note.text)).toMatchObject({ origin: `${VAULT}/acme`, size: 3 });
    expect(await verifyNote(note, [parseVkey(vkey)!], verifySignatures)).toMatchObject({
      good: [{ text: vkey }],
      bad: [],
    });
  });

  it('serves tiles and bundles of what is published', async () => {
    const tile = await get('/t/acme/tile/0/000.p/3');
    expect([tile.status, tile.headers.get('content-type'), tile.headers.get('cache-control')]).toEqual([
      200,
      'application/octet-stream',
      'private, max-age=3600, immutable',
    ]);
    expect((await tile.arrayBuffer()).byteLength).toBe(96);
    const bundle = await get('/t/acme/tile/entries/000.p/3');
    expect(await bundle.text()).toContain('nd7/enrol/v1\norigin vault.test/acme\n');
    for (const path of [
      '0/000',
      '0/000.p/4',
      '0/000.p/0',
      '0/0',
      '1/000.p/1',
      'entries/001',
      '64/000',
      '0/x000/000',
      '..%2fcheckpoint',
      '0/000.p/03',
      '',
    ]) {
      const answer = await get(`/t/acme/tile/${path}`);
      expect([path, answer.status]).toEqual([path, 404]);
      expect(await answer.json()).toMatchObject({ status: 404 });
    }
  });

  it('is for the readers of the team', async () => {
    for (const path of [
      '/t/acme/checkpoint',
      '/t/acme/tile/0/000.p/3',
      '/t/acme/tile/entries/000.p/3',
      '/t/nobody/checkpoint',
    ]) {
      expect([path, (await get(path, stranger)).status]).toEqual([path, 404]);
      expect([path, (await fetch(`${url}${path}`)).status]).toEqual([path, 401]);
    }
    expect((await get('/t/other/checkpoint', stranger)).status).toBe(404); // no leaf yet
    expect((await fetch(`${url}/v1/log`)).status).toBe(401);
  });

  it('is for everybody where the team made it public, and caches may keep it then', async () => {
    await world.io
      .database()
      .tenant('acme', (tx) => tx`insert into nd7.team_setting (team, name, value) values ('acme', 'log', 'public')`);
    const answer = await until(async () => {
      const found = await fetch(`${url}/t/acme/tile/0/000.p/3`);
      return found.status === 200 ? found : undefined;
    });
    expect(answer.headers.get('cache-control')).toBe('public, max-age=3600, immutable');
    expect((await fetch(`${url}/t/acme/checkpoint`)).headers.get('cache-control')).toBe('public, no-cache');
    expect((await fetch(`${url}/t/other/checkpoint`)).status).toBe(401);
  });

  it('tells a reader where it stands', async () => {
    const state = (await (await get('/v1/log')).json()) as Record<string, unknown>;
    expect(state).toEqual({
      origin: `${VAULT}/acme`,
      vkey,
      size: 3,
      published: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      policy: `log ${vkey}\nquorum none\n`,
    });
    expect(await (await get('/v1/log', stranger)).json()).toMatchObject({
      origin: `${VAULT}/other`,
      size: 0,
      published: null,
    });
  });

  it('is counted', async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const line of [
      'nd7_log_leaves_total{state="sequenced"} 3',
      'nd7_log_leaves_total{state="published"} 3',
      'nd7_log_size{team="acme"} 3',
      'nd7_log_read_only{team="acme"} 0',
    ])
      expect(text).toContain(line);
    expect(text).toMatch(/nd7_log_publish_seconds_count [1-3]\n/);
  });
});
