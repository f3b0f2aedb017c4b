// Reading: the list, keys, hostile words, long logs, files of the reader's own.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatHeadFile } from '@nd7/chain';
import { generateKeyPair } from '@nd7/signing';
import { HOSTILE } from './fixtures/acme.js';
import { inChromium } from './fixtures/chromium.js';
import { Desk, pathOf } from './fixtures/desk.js';
import { Recording, said } from './fixtures/session.js';
import type { Held } from './fixtures/team.js';
import { greens } from './fixtures/visit.js';

const desk = new Desk();

inChromium('the sessions list', () => {
  desk.oneReader();
  it('loads on, filters in the address, and shows a value nobody knows', async () => {
    await desk.page.getByText('50 loaded, more there are').waitFor();
    await desk.page.getByRole('button', { name: 'Load more' }).click();
    await desk.page.getByText(/^68 loaded$/).waitFor();
    await desk.page.getByRole('checkbox', { name: 'forked' }).check();
    await desk.page.waitForURL('**/sessions?state=forked');
    await desk.page.getByRole('row', { name: /9edcf7d4/ }).waitFor();
    await desk.page.getByRole('button', { name: 'Remove filter state' }).click();
    await desk.visit.go('/sessions?state=sideways');
    await desk.page.getByText('No session matches').waitFor();
    await desk.page.getByText('sideways').waitFor();
    await desk.page.getByRole('button', { name: 'Clear filters' }).click();
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
  });

  it('is one tab stop: arrows and j, k move, Enter opens, v verifies', async () => {
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
    await desk.page.keyboard.press('j');
    await desk.page.keyboard.press('v');
    await desk.page
      .getByRole('row', { name: /7962b8a7/ })
      .getByText('verified here')
      .waitFor();
    await desk.page.keyboard.press('ArrowDown');
    expect(await desk.page.evaluate(() => document.activeElement?.textContent)).toContain('c04e19aa');
    await desk.page.keyboard.press('v');
    await desk.page
      .getByRole('row', { name: /c04e19aa/ })
      .getByText('first 34')
      .waitFor();
    await desk.page.keyboard.press('k');
    await desk.page.keyboard.press('Enter');
    await desk.page.waitForURL('**/sessions/7962b8a7-023b-40fb-9811-7b65c6241179');
  });

  it('verifies what is shown, and filters by what was found', async () => {
    await desk.page.getByRole('searchbox').fill('lena');
    await desk.page.getByRole('checkbox', { name: 'closed' }).check();
    await desk.page.getByRole('searchbox').fill('71ac5be9');
    await desk.page.getByRole('button', { name: 'Verify this 1' }).click();
    await desk.page.getByText('wrong-prev at 6').waitFor();
    await desk.page.getByRole('searchbox').fill('');
    await desk.page.getByRole('checkbox', { name: 'failed' }).check();
    expect(await desk.page.getByRole('row').count()).toBe(2);
  });

  it('never counts a fork as verified, though what this browser was given checks out', async () => {
    await desk.open(desk.world.forked);
    await desk.heading.filter({ hasText: 'The machine signed a second history of this session' }).waitFor();
    await desk.page.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click();
    await desk.page.getByRole('checkbox', { name: 'forked' }).check();
    await desk.page.getByRole('row', { name: /9edcf7d4/ }).waitFor();
    await desk.page.getByRole('checkbox', { name: 'failed' }).check();
    await desk.page.waitForURL('**/sessions?*checked=failed*');
    await desk.page.getByRole('row', { name: /9edcf7d4/ }).waitFor();
    await desk.page.getByRole('checkbox', { name: 'verified here' }).check();
    await desk.page.waitForURL('**/sessions?*checked=verified*');
    await desk.page.getByText('No session matches').waitFor();
  });

  it('keeps its rows when the vault stops answering', async () => {
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
    desk.vault.bend.failing = { '/v1/sessions': 'busy' };
    await desk.page.getByRole('link', { name: 'Verify' }).click();
    await desk.page.getByRole('link', { name: 'Sessions' }).click();
    await desk.page.getByText('What is on the page is from').waitFor();
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
    desk.vault.reset();
    await desk.page.getByRole('button', { name: 'Try again' }).click();
    await desk.page.getByText('What is on the page is from').waitFor({ state: 'detached' });
  });
});

inChromium('the incidents list', () => {
  desk.oneReader();
  it('says how many are open, filters in the address, and loads older ones', async () => {
    const nav = desk.page.getByRole('navigation', { name: 'Main' });
    await nav.getByText('4 open').waitFor();
    await nav.getByRole('link', { name: 'Incidents' }).click();
    const rows = desk.page.getByRole('grid').getByRole('row');
    await rows.nth(50).waitFor();
    expect(await rows.count()).toBe(51);
    await desk.page.getByRole('button', { name: 'Load older' }).click();
    await rows.nth(59).waitFor();
    await desk.page.getByRole('button', { name: 'Open 4' }).click();
    await desk.page.waitForURL('**/incidents?state=open');
    await rows.nth(5).waitFor({ state: 'detached' });
    expect(await rows.count()).toBe(5);
    await desk.visit.go('/incidents?state=over');
    await desk.page.getByText('the machine says that it was asleep').first().waitFor();
    expect(await desk.page.getByText('INC-142').count()).toBe(0);
  });

  it('leads to one of another day, whose times name that day, in the reader’s zone', async () => {
    await desk.visit.go('/incidents/INC-80');
    await desk.heading.filter({ hasText: 'has gone quiet' }).waitFor();
    const times = await desk.page.locator('main time').allInnerTexts();
    expect(times.length).toBe(3); // raised, last heard, over
    for (const time of times) expect(time).toMatch(/^\d+ [A-Z][a-z]{2,3}( \d{4})? \d\d:\d\d:\d\d/);
    expect(await desk.page.locator('main').innerText()).not.toMatch(/\dT\d/);
  });
});

inChromium('keys', () => {
  desk.oneReader();
  it('lead everywhere, are off in fields, and can be switched off', async () => {
    await desk.page.keyboard.press('g');
    await desk.page.getByText('or an entry’s number').waitFor();
    await desk.page.keyboard.press('i');
    await desk.page.waitForURL('**/incidents');
    await desk.page.keyboard.press('/');
    await desk.page.keyboard.type('g s');
    expect(await desk.page.getByRole('searchbox').inputValue()).toBe('g s');
    await desk.page.keyboard.press('Escape');
    await desk.page.keyboard.press('?');
    await desk.page.getByRole('dialog').getByRole('checkbox').uncheck();
    await desk.page.keyboard.press('Escape');
    await desk.page.getByRole('dialog').waitFor({ state: 'detached' });
    await desk.page.keyboard.press('g');
    await desk.page.keyboard.press('s');
    expect(desk.page.url()).toContain('/incidents');
    await desk.page.getByRole('button', { name: 'Keyboard map' }).click();
    await desk.page.getByRole('dialog').getByRole('checkbox').check();
    await desk.page.keyboard.press('Escape');
    await desk.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('in a session move, fold, jump, and open the raw line', async () => {
    await desk.open(desk.world.whole);
    await desk.heading.filter({ hasText: 'complete and signed' }).waitFor();
    await desk.page.keyboard.press('g');
    await desk.page.keyboard.press('6');
    await desk.page.keyboard.press('Enter');
    const inspector = desk.page.getByRole('complementary', { name: 'Entry 6' });
    await inspector.getByText('tool.before').waitFor();
    await desk.page.keyboard.press('o');
    await desk.page.getByText('it reported a result').waitFor();
    await desk.page.keyboard.press('o');
    await desk.page.getByText('it reported a result').waitFor({ state: 'detached' });
    await desk.page.keyboard.press(']');
    await desk.page.getByRole('complementary', { name: 'Entry 7' }).getByText('rule.allow').waitFor();
    await desk.page.keyboard.press('j');
    await desk.page.getByRole('complementary', { name: 'Entry 11' }).waitFor();
    await desk.page.keyboard.press('r');
    await desk.page.getByRole('dialog').getByText('"v":1,"seq":11,').waitFor();
    await desk.page.keyboard.press('Escape');
    await desk.page.getByRole('dialog').waitFor({ state: 'detached' });
    await desk.page.keyboard.press('n');
    await desk.page.getByRole('complementary').getByText('rule.deny').waitFor();
    expect(desk.page.url()).toContain('entry=');
  });

  it('check again and again: the entries shown are those of the last check', async () => {
    desk.vault.bend.slow = 150;
    await desk.visit.go(`${pathOf(desk.world.whole)}?entry=11`);
    await desk.page.locator('h1').filter({ hasText: 'Checking' }).waitFor();
    for (let i = 0; i < 4; i++) await desk.page.keyboard.press('v');
    await desk.heading.filter({ hasText: 'complete and signed' }).waitFor();
    await desk.page.keyboard.press('r');
    await desk.page.getByRole('dialog').getByText('"v":1,"seq":11,').waitFor();
    await desk.page.keyboard.press('Escape');
    await desk.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('step through an inclusion proof, to the root that was signed', async () => {
    await desk.visit.go(`${pathOf(desk.world.whole)}/verification`);
    await desk.page.getByText(/^Step 0 of \d+$/).waitFor();
    await desk.page.keyboard.press('ArrowRight');
    await desk.page.getByText(/^Step 1 of/).waitFor();
    await desk.page.getByText('SHA-256(0x01 ‖ left ‖ right)').waitFor();
    await desk.page.keyboard.press('ArrowLeft');
    await desk.page.getByText('SHA-256(0x00 ‖ leaf)').waitFor();
    await desk.page.getByRole('button', { name: 'To the root' }).click();
    const [gives, end] = await desk.page
      .locator('dl')
      .filter({ hasText: 'At the end' })
      .getByTitle(/^[0-9a-f]{64}$/)
      .evaluateAll((all) => all.slice(-2).map((one) => one.getAttribute('title')));
    expect(gives).toBe(end);
    await desk.page.getByText('equals the signed root').waitFor();
  });
});

inChromium('words of an agent', () => {
  desk.oneReader();
  it('are text: nothing in them becomes a part of the page, acts, or hides', async () => {
    await desk.open(desk.world.hostile);
    await desk.heading.filter({ hasText: /entries/ }).waitFor();
    await desk.page.getByRole('button', { name: /Bash.*invoice/ }).click();
    await desk.page.getByText('Standard error, 1 line').waitFor();
    const found = await desk.page.evaluate(() => ({
      title: document.title,
      foreign: [...document.querySelectorAll('main img, main script, main iframe, main a')]
        .map((one) => one.outerHTML)
        .filter((html) => /x\.example|onerror|javascript/.test(html)),
      raw: [...document.querySelectorAll('main')].some((main) =>
        /[\u202a-\u202e\u2066-\u2069]/.test(
          [...main.querySelectorAll('*')]
            .filter((one) => one.children.length === 0 && !one.closest('[data-box]'))
            .map((one) => one.textContent)
            .join(''),
        ),
      ),
      boxes: [...new Set([...document.querySelectorAll('[data-box]')].map((one) => one.getAttribute('data-box')))],
    }));
    expect(found).toMatchObject({
      title: expect.stringMatching(/^Session a91f40bd.* · nd7$/),
      foreign: [],
      raw: false,
    });
    expect(found.boxes).toEqual(
      expect.arrayContaining([
        'U+202E',
        'U+202C',
        'ESC[31m',
        'ESC]8;;https://x.example',
        'U+200B',
        '0x00',
        'U+2066',
        'U+00AD',
      ]),
    );
    expect(found.boxes).not.toContain('U+200D');
  });

  it('are copied as the bytes they are', async () => {
    await desk.open(desk.world.hostile);
    const prompt = desk.page.locator('li').filter({ hasText: 'prompt' }).locator('span[dir="ltr"]').first();
    await prompt.waitFor();
    expect(await prompt.evaluate((one) => one.textContent)).toBe(Object.values(HOSTILE).join('\n'));
  });

  it('are cut where a line is long and folded where there are many, with the length beside them', async () => {
    await desk.open(desk.world.hostile);
    await desk.page.getByRole('button', { name: /seq 1 20000/ }).click();
    await desk.page.getByText('19,960 lines folded').waitFor();
    await desk.page.getByRole('button', { name: /min\.js/ }).click();
    await desk.page.getByText(/60,000 characters/).waitFor();
  });

  it('stay unclassified where a line is not of its form, whatever it claims to be', async () => {
    await desk.open(desk.world.hostile, '?view=entries');
    await desk.page.getByRole('button', { name: /^unclassified 2$/ }).waitFor();
    expect(await desk.page.getByRole('button', { name: /^effect 0$/ }).count()).toBe(1);
  });
});

inChromium('a session of a hundred thousand entries', () => {
  desk.oneReader();
  let long: Held;
  beforeAll(async () => {
    const key = [...desk.world.team.machines.values()][0]!.key;
    const recording = new Recording(desk.world.team.log.origin, key, 'long-session', Date.now() - 7 * 86_400_000).cut();
    for (let i = 0; i < 100_000; i++) {
      recording.add(
        said(
          `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"step ${String(i)}"},"tool_use_id":"toolu_${String(i)}"}`,
          50,
        ),
      );
      if (i % 4000 === 3999) recording.cut();
    }
    long = await desk.world.team.take(recording, { state: 'closed' });
    desk.world.team.sessions.push(...desk.world.team.sessions.splice(0, 1));
  }, 120_000);

  it('is checked whole, drawn in part, and jumped through', async () => {
    await desk.open(long);
    await desk.heading.filter({ hasText: /^Unchanged and signed: .* 100,0\d\d entries/ }).waitFor({ timeout: 90_000 });
    const items = desk.page.getByRole('list', { name: 'Story' }).getByRole('listitem');
    expect(await items.count()).toBeLessThan(60);
    expect(Number(await items.first().getAttribute('aria-setsize'))).toBeGreaterThan(100_000);
    await desk.page.keyboard.press('g');
    await desk.page.keyboard.type('90000');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByRole('complementary', { name: 'Entry 90000' }).waitFor();
    await desk.page.locator('li[aria-current="true"]').waitFor();
    await desk.page.getByRole('searchbox').fill('step 77777');
    await desk.page.locator('li').filter({ hasText: 'step 77777' }).waitFor({ timeout: 30_000 });
    // What stood there before goes with the next picture.
    await items.nth(1).waitFor({ state: 'detached', timeout: 30_000 });
    expect(await items.count()).toBe(1);
  });
});

inChromium('files of the reader’s own', () => {
  desk.oneReader();
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nd7-files-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  const put = (name: string, content: string | Uint8Array) => {
    const path = join(folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  const files = (held: Held) => {
    const log = new Uint8Array(Buffer.concat(held.segments.map((segment) => segment.body)));
    return [
      put('log.jsonl', log),
      put('head.json', formatHeadFile({ entries: held.row.entries, hash: held.row.head, bytes: log.length })),
      ...held.segments.map((segment, i) => put(`receipts/${String(i)}.tlog-proof`, segment.receipt ?? '')),
    ];
  };
  const choose = async (paths: string[], session: string) => {
    await desk.visit.go('/verify');
    await desk.page.locator('input[type="file"]').setInputFiles(paths);
    await desk.page.getByLabel('Session id').fill(session);
    await desk.page.getByRole('button', { name: 'Verify here' }).click();
  };

  it('are verified with the pinned key, and leave the browser by no request', async () => {
    await desk.visit.go('/verify');
    const sent: string[] = [];
    desk.page.on('request', (request) => {
      if (request.method() !== 'GET' || !/\/(t\/acme|v1\/incidents|v1\/me|assets|nd7\.svg)/.test(request.url()))
        sent.push(`${request.method()} ${request.url()}`);
    });
    await desk.page.locator('input[type="file"]').setInputFiles(files(desk.world.whole));
    await desk.page.getByLabel('Session id').fill(desk.world.whole.row.session);
    await desk.page.getByRole('button', { name: 'Verify here' }).click();
    await desk.heading.filter({ hasText: 'Unchanged, complete and signed: all 48 entries' }).waitFor();
    await desk.page.getByText('Inclusion proof, step by step').waitFor();
    expect(sent).toEqual([]);
  });

  it('without receipts rest on the local head only, and say so', async () => {
    await choose(files(desk.world.whole).slice(0, 2), desk.world.whole.row.session);
    await desk.heading.filter({ hasText: 'no signature you pinned' }).waitFor();
    await desk.page.getByText(/whoever could rewrite this log could rewrite its head with it/i).waitFor();
    expect((await greens(desk.page)).filter((text) => text !== '')).toEqual([]);
  });

  it('under another session’s id do not check out', async () => {
    await choose(files(desk.world.whole), 'another-id');
    await desk.heading.filter({ hasText: 'Changed at entry 0: wrong-genesis' }).waitFor();
  });

  it('that are none are named, with what they look like', async () => {
    await desk.visit.go('/verify');
    await desk.page
      .locator('input[type="file"]')
      .setInputFiles([
        put('photo.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10])),
        put('head.json', '{"entries":1}'),
      ]);
    await desk.page.getByText('photo.png').waitFor();
    await desk.page.getByText('a PNG picture').waitFor();
    await desk.page.getByText('JSON, but no head with its entries, hash and bytes').waitFor();
  });

  it('with a key that is none say so before anything is read', async () => {
    await desk.visit.go('/verify');
    await desk.page.locator('input[type="file"]').setInputFiles(files(desk.world.whole).slice(0, 1));
    await desk.page.getByLabel('Session id').fill(desk.world.whole.row.session);
    await desk.page.getByLabel('Verifier keys you trust').fill('vault.example/acme+nonsense');
    await desk.page.getByRole('button', { name: 'Verify here' }).click();
    await desk.page.getByText('is no verifier key of a vault').waitFor();
  });

  it('can be a long log: it is read piece by piece', async () => {
    const key = generateKeyPair();
    const recording = new Recording(desk.world.team.log.origin, key, 'big', Date.now());
    for (let i = 0; i < 30; i++)
      recording.add(said(JSON.stringify({ hook_event_name: 'Notification', message: 'x'.repeat(400_000) })));
    await choose([put('log.jsonl', recording.log)], 'big');
    await desk.heading.filter({ hasText: 'stands behind 31 entries' }).waitFor({ timeout: 60_000 });
  });
});

inChromium('the theme', () => {
  desk.oneReader();

  it('follows the system until it is switched, and the choice is kept', async () => {
    const ground = () => desk.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await ground();
    await desk.page.getByRole('button', { name: 'Switch theme' }).click();
    const dark = await ground();
    expect(dark).not.toBe(light);
    await desk.page.reload();
    expect(await ground()).toBe(dark);
    await desk.page.getByRole('button', { name: 'Switch theme' }).click();
    expect(await desk.page.evaluate(() => localStorage.getItem('nd7-theme'))).toBeNull();
  });
});
