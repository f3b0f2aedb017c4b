// What the pages may call verified: signing in and pinning, the verdict as the heading, the trust bar.
import { generateKeyPair } from '@nd7/signing';
import { inChromium } from './fixtures/chromium.js';
import { Desk, pathOf } from './fixtures/desk.js';
import { TeamLog } from './fixtures/log.js';
import { TOKEN } from './fixtures/server.js';
import { greens, Visit } from './fixtures/visit.js';

const desk = new Desk();

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 50));
}

inChromium('signing in', () => {
  desk.oneReader();
  it('by the link takes token and key out of the address and the history, and pins the key', async () => {
    expect(desk.page.url()).toBe(`${desk.vault.url}/sessions`);
    await desk.page.getByText(/Checkpoint [\d,]+ verified here/).waitFor();
    await desk.page.goBack();
    expect(desk.page.url()).not.toContain(TOKEN);
    await desk.page.goForward();
    const pins = await desk.page.evaluate(() => localStorage.getItem('nd7-pins'));
    expect(JSON.parse(pins ?? '{}')).toMatchObject({
      [desk.world.team.log.origin]: { vkey: desk.world.team.log.vkey, how: 'link' },
    });
    expect(await desk.page.evaluate(() => document.cookie + JSON.stringify(localStorage))).not.toContain(TOKEN);
  });

  it('leads to the page that the link names, and to no other place', async () => {
    const link = `/sign-in#token=${TOKEN}&pin=${encodeURIComponent(desk.world.team.log.vkey)}&to=`;
    await desk.visit.open(`${link}${encodeURIComponent(`${pathOf(desk.world.whole)}?view=receipts`)}`);
    await desk.page.waitForURL(`**${pathOf(desk.world.whole)}?view=receipts`);
    await desk.visit.open('/incidents');
    await desk.visit.open(`${link}${encodeURIComponent('//evil.example/sessions')}`);
    await desk.page.waitForURL(`${desk.vault.url}/sessions`);
  });

  it('without a key says that nothing is verified, and draws nothing green', async () => {
    const other = await Visit.begin(desk.browser, desk.vault);
    await other.open(`/sign-in#token=${TOKEN}`);
    await other.page.getByRole('button', { name: 'Go on without' }).click();
    await other.page.getByText('No key pinned: nothing is verified').waitFor();
    await other.go(pathOf(desk.world.whole));
    await other.page.locator('h1').filter({ hasText: 'no signature you pinned' }).waitFor();
    await other.page.getByRole('link', { name: 'Verification' }).click();
    await other.page.getByText('Not signed by a key you pinned').first().waitFor();
    await other.page.getByText('Inclusion proof, step by step').waitFor();
    expect(await greens(other.page)).toEqual([]);
    expect(await other.wrong()).toEqual([]);
    await other.end();
  });

  it('with another key than the pinned one asks, and keeps the pinned one', async () => {
    const pinned = () =>
      desk.page.evaluate(() => {
        const pins = JSON.parse(localStorage.getItem('nd7-pins') ?? '{}') as Record<string, { vkey: string }>;
        return pins['vault.example/acme']?.vkey;
      });
    const other = new TeamLog(desk.world.team.log.origin).vkey;
    await desk.visit.open(`/sign-in#token=${TOKEN}&pin=${encodeURIComponent(other)}`);
    await desk.heading.filter({ hasText: 'another key than the one you pinned' }).waitFor();
    await desk.page.getByRole('button', { name: 'Keep the pinned key' }).click();
    await desk.page.waitForURL('**/sessions');
    expect(await pinned()).toBe(desk.world.team.log.vkey);
    // A key that is none does not even ask.
    await desk.visit.open('/incidents');
    await desk.visit.open(`/sign-in#token=${TOKEN}&pin=nonsense`);
    await desk.page.waitForURL('**/sessions');
    expect(await pinned()).toBe(desk.world.team.log.vkey);
  });

  it('with a wrong token says so', async () => {
    await desk.visit.open('/sign-in');
    await desk.page.getByLabel('Reader token').fill('nd7r1_wrong');
    await desk.page.getByRole('button', { name: 'Sign in' }).click();
    await desk.page.getByText('Not signed in', { exact: true }).waitFor();
  });

  it('ends: the page goes to the sign-in page, so does whoever comes without a sign-in; the link signs in again', async () => {
    await desk.page.getByRole('button', { name: 'Sign out' }).click();
    await desk.page.waitForURL('**/sign-in');
    await desk.visit.open('/sessions');
    await desk.page.waitForURL('**/sign-in');
    // And begins anew by a link that is opened where the page already stands: nothing but what is behind the # changes.
    await desk.visit.signIn();
    await desk.page.getByText(/Checkpoint [\d,]+ verified here/).waitFor();
    expect(desk.page.url()).not.toContain(TOKEN);
    await desk.page.getByRole('button', { name: 'Sign out' }).click();
    await desk.page.getByLabel('Reader token').waitFor();
    await desk.visit.signIn();
  });

  it('ends on a phone as well, which has no column with the way out', async () => {
    await desk.page.setViewportSize({ width: 390, height: 844 });
    await desk.visit.open('/sessions');
    const out = desk.page.getByRole('button', { name: 'Sign out' });
    await out.waitFor();
    expect(await out.count()).toBe(1);
    expect(await desk.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await out.click();
    await desk.page.waitForURL('**/sign-in');
    expect(await out.count()).toBe(0);
    await desk.page.setViewportSize({ width: 1440, height: 900 });
    await desk.visit.signIn();
  });
});

inChromium('the verdict is the heading', () => {
  desk.oneReader();
  it.each([
    ['whole', 'Unchanged, complete and signed: all 48 entries'],
    ['open', /^Unchanged and signed: the first 34 entries; still open, so 4 later entries are not covered$/],
    ['edited', /^Changed at entry 6: wrong-prev$/],
    ['cut', /^3 missing: a receipt counts more entries than are here$/],
    ['rewritten', /^Changed at entry \d+: receipt-mismatch$/],
    ['bare', /no signature you pinned stands behind 8 entries$/],
    ['forked', /^The machine signed a second history of this session\. Unchanged and signed: .* 18 entries/],
  ] as const)('%s', async (name, sentence) => {
    await desk.open(desk.world[name]);
    await desk.heading.filter({ hasText: sentence }).waitFor();
  });

  it('says what was expected and what was found', async () => {
    await desk.visit.go(`${pathOf(desk.world.edited)}/verification`);
    await desk.page.getByText('hash of entry 5', { exact: true }).waitFor();
    await desk.page.getByText('in the line of entry 6').waitFor();
    await desk.page.getByText('Changed at entry 6', { exact: true }).waitFor();
  });

  it('is green only where a receipt that holds covers it', async () => {
    await desk.open(desk.world.rewritten);
    await desk.heading.filter({ hasText: 'receipt-mismatch' }).waitFor();
    // The first segment's receipt still holds: entry 0 is proved, and nothing else on the desk.page.
    expect(
      (await greens(desk.page)).every(
        (text) => /^(link recomputed|seal \d+|receipt, leaf \d+)$/.test(text) || text.includes('link recomputed'),
      ),
    ).toBe(true);
    await desk.page.keyboard.press('n');
    await desk.page.getByRole('complementary').getByText('receipt-mismatch').waitFor();
    expect(await greens(desk.page)).toEqual([]);
  });

  it('comes only at the end: before it the page says how far the check is', async () => {
    desk.vault.bend.slow = 700;
    await desk.visit.go(pathOf(desk.world.whole));
    await desk.heading.filter({ hasText: /^Checking 48 entries in this browser, \d+ %$/ }).waitFor();
    expect(await greens(desk.page)).toEqual([]);
    expect(await desk.page.getByRole('progressbar', { name: 'Bytes checked' }).count()).toBe(1);
    await desk.heading.filter({ hasText: 'complete and signed' }).waitFor();
  });

  it('is none where the vault keeps bytes back, and says which', async () => {
    desk.vault.bend.failing = { [`${'/v1'}${pathOf(desk.world.whole)}/segments/2/body`]: 'internal' };
    await desk.visit.go(pathOf(desk.world.whole));
    await desk.heading.filter({ hasText: 'Not checked' }).waitFor();
    await desk.page.getByText('did not give the bytes of entries 2 to 43').waitFor();
    desk.vault.reset();
    await desk.page.getByRole('button', { name: 'Try again' }).click();
    await desk.heading.filter({ hasText: 'complete and signed' }).waitFor();
  });
});

inChromium('the trust bar', () => {
  desk.oneReader();
  const bar = () => desk.page.getByRole('contentinfo');
  const reload = async () => {
    await desk.page.reload();
    await bar()
      .getByText(/Checkpoint [\d,]+ verified here/)
      .waitFor();
  };

  it('refuses a checkpoint that the pinned key did not sign', async () => {
    await reload();
    desk.vault.bend.checkpoint = await desk.world.team.log.checkpoint(desk.world.team.log.size, {
      signer: generateKeyPair(),
    });
    await desk.page.reload();
    await bar().getByText('bad-signature').waitFor();
    await bar().getByText('not signed by the key you pinned').waitFor();
  });

  it('refuses a log that shrank, and one that shows two trees of one size', async () => {
    await reload();
    desk.vault.bend.checkpoint = await desk.world.team.log.checkpoint(desk.world.team.log.size - 5);
    await desk.page.reload();
    await bar()
      .getByText(/log shrank to/)
      .waitFor();
    desk.vault.bend.checkpoint = await desk.world.team.log.checkpoint(desk.world.team.log.size, {
      root: new Uint8Array(32).fill(1),
    });
    await desk.page.reload();
    await bar()
      .getByText(/split view at/)
      .waitFor();
  });

  it('takes a longer log when tiles prove that it extends the one seen, and not green when they cannot be had', async () => {
    desk.vault.bend.checkpoint = await desk.world.team.log.checkpoint(desk.world.team.log.size - 100);
    await desk.page.evaluate(() => localStorage.removeItem('nd7-seen:vault.example/acme'));
    await desk.page.reload();
    const before = (desk.world.team.log.size - 100).toLocaleString('en');
    await bar().getByText(`Checkpoint ${before} verified here`).waitFor();
    desk.vault.bend.checkpoint = undefined;
    desk.vault.bend.noTiles = true;
    await desk.page.reload();
    await bar()
      .getByText(/signed, not shown to extend/)
      .waitFor();
    desk.vault.bend.noTiles = false;
    await desk.page.reload();
    await bar()
      .getByText(`Checkpoint ${desk.world.team.log.size.toLocaleString('en')} verified here`)
      .waitFor();
    expect(
      await bar()
        .getByTitle(/a proof checked here shows/)
        .count(),
    ).toBe(1);
  });

  it('judges anew every half minute, and says how old its last look is when it cannot', async () => {
    const other = await Visit.begin(desk.browser, desk.vault);
    await other.page.clock.install();
    await other.signIn();
    const words = other.page.getByRole('contentinfo');
    await words.getByText(/Checkpoint [\d,]+ verified here/).waitFor();
    const asked = () => desk.vault.requests.filter((request) => request.endsWith('/t/acme/checkpoint')).length;
    const before = asked();
    await other.page.clock.runFor(31_000);
    await until(() => asked() > before);
    await words.getByText(/Checkpoint [\d,]+ verified here/).waitFor();
    desk.vault.bend.failing = { '/t/acme/checkpoint': 'busy' };
    await other.page.clock.runFor(6 * 60_000);
    await words.getByText(/last checked \d+ min ago/).waitFor();
    await other.end();
  });
});
