// The dashboard on the real vault: `npm start` records, ships and serves; a reader opens the link it prints in Chromium and has everything checked
// there. Then the vault's own administrators change what is stored, and the same browser says so.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres, type RunningPostgres } from '@nd7/postgres';
import type { Browser } from 'playwright-core';
import { PAGE_POLICY, WORKER_POLICY } from '../../apps/vault/src/http/headers.js';
import { inChromium, startChromium } from '../browser/fixtures/chromium.js';
import { greens, Visit } from '../browser/fixtures/visit.js';
import { Insider } from './insider.fixture.js';
import { Task } from './task.fixture.js';

inChromium('the dashboard of the vault that npm start brings up', () => {
  let folder: string;
  let database: RunningPostgres;
  let start: Task;
  let link: string;
  let browser: Browser;
  let visit: Visit;
  /** The sessions that were recorded, with what `nd7 verify` said of each. */
  let sessions: { id: string; entries: number; receipts: number }[];
  /** The policy that came with each page and script. */
  const policies = new Map<string, string>();

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nd7-dashboard-'));
    chmodSync(folder, 0o711); // a server that root starts runs as another user
    database = await startPostgres({ dataDir: join(folder, 'postgres'), durable: false });
    start = new Task(['start'], { ND7_DEV_DIR: folder, ND7_PORT: '4390', ND7_DATABASE_URL: database.url });
    [, link = ''] = await start.says(/Look at the session\s+(http\S+)\n/);
    const ids = [...start.output.matchAll(/payloads, session (\S+)/g)].map((match) => match[1] ?? '');
    const said = [...start.output.matchAll(/verified, (\d+) entries intact, (\d+) receipts hold/g)];
    sessions = ids.map((id, i) => ({ id, entries: Number(said[i]?.[1]), receipts: Number(said[i]?.[2]) }));
    browser = await startChromium();
    visit = await Visit.begin(browser, { url: new URL(link).origin, signInUrl: link });
    visit.page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      policies.set(pathname, response.headers()['content-security-policy'] ?? '');
    });
  });
  afterAll(async () => {
    await (browser as Browser | undefined)?.close();
    const run = await (start as Task | undefined)?.interrupt();
    await (database as RunningPostgres | undefined)?.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 20 });
    expect(run?.code).toBe(0);
  });
  afterEach(async () => {
    expect(await visit.wrong()).toEqual([]);
  });

  const heading = () => visit.page.locator('h1');
  const bar = () => visit.page.getByRole('contentinfo');
  /** The session's page, loaded anew: the verdict is of this very load. */
  const open = async (session: string) => {
    const { pathname } = new URL(new URLSearchParams(new URL(link).hash.slice(1)).get('to') ?? '', visit.url);
    await visit.open(pathname.replace(/[^/]+$/, session));
  };

  it('signs in by the link that is printed, and has the session verified here', async () => {
    const last = sessions.at(-1)!;
    expect(sessions).toHaveLength(2);
    await visit.page.goto(link);
    await heading()
      .filter({ hasText: `Unchanged, complete and signed: all ${String(last.entries)} entries` })
      .waitFor();
    expect(new URL(visit.page.url()).pathname).toMatch(new RegExp(`/sessions/${last.id}$`));
    expect(visit.page.url()).not.toContain('nd7r1_');
    await visit.page.getByRole('main').getByText('verified here', { exact: true }).waitFor();
    await bar()
      .getByText(/Checkpoint [\d,]+ verified here/)
      .waitFor();
  });

  it('has done so under the policies that the vault sends, in a worker that has no network', () => {
    const worker = [...policies].filter(([path]) => path.includes('/verify-worker'));
    expect(worker.map(([, policy]) => policy)).toEqual([WORKER_POLICY]);
    expect(policies.get('/sign-in')).toBe(PAGE_POLICY);
    expect([...policies.keys()].filter((path) => /\/segments\/\d+\/body$/.test(path)).length).toBeGreaterThan(0);
  });

  it('shows every receipt as held, and follows one to the root that was signed', async () => {
    const last = sessions.at(-1)!;
    await visit.page.getByRole('button', { name: `Receipts ${String(last.receipts)}` }).click();
    const rows = visit.page.getByRole('main').getByRole('row');
    await rows
      .filter({ hasText: 'holds' })
      .nth(last.receipts - 1)
      .waitFor();
    expect(await rows.filter({ hasText: 'holds' }).count()).toBe(last.receipts);
    await visit.page.getByRole('link', { name: 'Verification' }).click();
    await visit.page.getByText('Inclusion proof, step by step').waitFor();
    await visit.page.getByRole('button', { name: 'To the root' }).click();
    await visit.page.getByText('equals the signed root').waitFor();
  });

  it('lists what was recorded, by the vault’s word until each is verified here', async () => {
    await visit.go('/sessions');
    const [first, last] = sessions.map(({ id }) => visit.page.getByRole('row', { name: new RegExp(id.slice(0, 8)) }));
    await last!.getByText('verified here').waitFor();
    await first!.getByText('vault: sealed').waitFor();
    await first!.getByRole('link').click();
    await heading()
      .filter({ hasText: `Unchanged, complete and signed: all ${String(sessions[0]!.entries)} entries` })
      .waitFor();
    await visit.go('/sessions');
    await first!.getByText('verified here').waitFor();
  });

  it('never calls verified what a database administrator changed: the bytes are refused', async () => {
    const insider = new Insider(database.url);
    const stored = await insider.segments(sessions[0]!.id);
    await insider.flipByte(stored.at(-1)!);
    await insider.end();
    await open(sessions[0]!.id);
    await heading().filter({ hasText: 'Not checked' }).waitFor();
    const { from, to } = stored.at(-1)!;
    await visit.page.getByText(`did not give the bytes of entries ${String(from)} to ${String(to - 1)}`).waitFor();
    expect(await greens(visit.page)).toEqual([]);
  });

  it('names the entry that an administrator with the sealing key rewrote', async () => {
    const insider = new Insider(database.url);
    const { id } = sessions.at(-1)!;
    let changed = -1;
    // Where the recorder cut is a matter of time: the first segment that has a call in it.
    for (const segment of await insider.segments(id))
      if (changed < 0)
        await insider.rewrite(segment, join(folder, 'keys'), (text) => {
          const lines = text.split('\n');
          const at = lines.findIndex((line) => line.includes('"kind":"tool.before"'));
          if (at < 0) return text;
          changed = segment.from + at;
          lines[at] = (lines[at] ?? '').replace('"tool_name":"', '"tool_name":"X');
          return lines.join('\n');
        });
    expect(changed).toBeGreaterThan(0);
    await insider.end();
    await open(id);
    await heading()
      .filter({ hasText: `Changed at entry ${String(changed + 1)}: wrong-prev` })
      .waitFor();
    await visit.page
      .getByRole('main')
      .getByText(`wrong-prev at ${String(changed + 1)}`)
      .first()
      .waitFor();
    expect(await visit.page.getByRole('main').getByText('verified here').count()).toBe(0);
    await visit.go('/sessions');
    const row = visit.page.getByRole('row', { name: new RegExp(id.slice(0, 8)) });
    await row.getByText(`wrong-prev at ${String(changed + 1)}`).waitFor();
  });
});
