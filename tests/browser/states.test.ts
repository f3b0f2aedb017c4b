// What a page shows when there is nothing, not yet, or no answer: each state says what is so and what to do, in both themes, wide and narrow.
import { generateKeyPair } from '@nd7/signing';
import { inChromium } from './fixtures/chromium.js';
import { Desk, pathOf } from './fixtures/desk.js';
import { TeamLog } from './fixtures/log.js';
import { lookAt } from './fixtures/look.js';
import { FixtureVault, TOKEN } from './fixtures/server.js';
import { Team } from './fixtures/team.js';
import { greens, Visit } from './fixtures/visit.js';

const desk = new Desk();

inChromium('a team that has nothing yet', () => {
  let vault: FixtureVault;
  let visit: Visit;
  beforeAll(async () => {
    const team = new Team();
    await team.fill(1);
    vault = await FixtureVault.start(team);
    visit = await (await Visit.begin(desk.browser, vault)).signIn();
  });
  afterEach(async () => {
    expect(await visit.wrong()).toEqual([]);
  });
  afterAll(async () => {
    await visit.end();
    await vault.stop();
  });

  it.each([
    ['sessions', 'No session yet'],
    ['incidents', 'No incident'],
    ['machines', 'No machine yet'],
  ])('%s', async (page, words) => {
    await visit.go(`/${page}`);
    await visit.page.getByText(words).waitFor();
    await lookAt(visit, `empty-${page}`, true);
  });
});

inChromium('a page', () => {
  desk.oneReader();

  it('that waits holds the place of what will come', async () => {
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await desk.page.route('**/v1/sessions?*', async (route) => {
      await held;
      await route.continue().catch(() => undefined); // the page may be gone
    });
    await desk.page.reload();
    await desk.page.locator('[aria-busy="true"] span').nth(2).waitFor();
    await lookAt(desk.visit, 'loading-sessions', true);
    letGo();
    await desk.page.unroute('**/v1/sessions?*');
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
  });

  it('whose vault is down says so, and has all of the page back when it answers again', async () => {
    await desk.page.route('**/{v1,t}/**', (route) => route.abort('connectionrefused'));
    await desk.page.reload();
    await desk.page.getByText('The vault did not answer').first().waitFor();
    await lookAt(desk.visit, 'vault-down', true);
    await desk.visit.go(pathOf(desk.world.whole));
    await desk.page.getByRole('heading', { name: 'This session cannot be shown' }).waitFor();
    await lookAt(desk.visit, 'vault-down-session', true);
    await desk.page.getByRole('contentinfo').getByText('The vault does not answer').waitFor();
    await desk.page.unroute('**/{v1,t}/**');
    await desk.page.getByRole('button', { name: 'Try again' }).click();
    await desk.heading.filter({ hasText: 'complete and signed' }).waitFor();
  });

  it('of a session, an incident, an address that is not there', async () => {
    await desk.visit.go(`/machines/${'0'.repeat(64)}/sessions/nobody`);
    await desk.page.getByRole('heading', { name: 'This session cannot be shown' }).waitFor();
    await lookAt(desk.visit, 'session-unknown', true);
    await desk.visit.go(`/machines/${'0'.repeat(64)}/sessions/nobody/verification`);
    await desk.page.getByRole('heading', { name: 'cannot be' }).waitFor();
    await lookAt(desk.visit, 'verification-unknown', true);
    await desk.visit.go('/incidents/INC-0');
    await desk.page.getByRole('heading', { name: 'This incident cannot be shown' }).waitFor();
    await lookAt(desk.visit, 'incident-unknown', true);
    await desk.visit.go('/nowhere');
    await desk.page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await lookAt(desk.visit, 'nowhere', true);
  });

  it('whose bytes are kept back shows no verdict', async () => {
    desk.vault.bend.failing = { [`/v1${pathOf(desk.world.edited)}/segments/2/body`]: 'internal' };
    await desk.visit.go(pathOf(desk.world.edited));
    await desk.heading.filter({ hasText: 'Not checked' }).waitFor();
    await lookAt(desk.visit, 'session-not-checked', true);
  });

  it('with a key pinned that is not the vault’s calls nothing verified', async () => {
    const other = await Visit.begin(desk.browser, desk.vault);
    const { origin } = desk.world.team.log;
    const { vkey } = new TeamLog(origin);
    await other.page.addInitScript(
      ([name, key]) => {
        localStorage.setItem('nd7-pins', JSON.stringify({ [name]: { vkey: key, at: 0, how: 'by hand' } }));
      },
      [origin, vkey] as const,
    );
    await other.page.goto(desk.vault.signInUrl);
    await other.page.getByRole('heading', { name: 'another key than the one you pinned' }).waitFor();
    await lookAt(other, 'wrong-pin-link', true);
    await other.page.getByRole('button', { name: 'Keep the pinned key' }).click();
    await other.page.getByRole('contentinfo').getByText('The vault shows another key').waitFor();
    await other.go(pathOf(desk.world.whole));
    await other.page.locator('h1').filter({ hasText: 'not signed by a key you pinned' }).waitFor();
    await other.go(`${pathOf(desk.world.whole)}/verification`);
    await other.page.getByText('What was not checked').waitFor();
    await lookAt(other, 'wrong-pin-verification', true);
    expect(await greens(other.page)).toEqual([]);
    await other.end();
  });

  it('whose sign-in has ended asks for a new one, and goes on where it was', async () => {
    const other = await (await Visit.begin(desk.browser, desk.vault)).signIn();
    await other.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
    await other.context.clearCookies();
    await other.go(`${pathOf(desk.world.whole)}?view=receipts`);
    await other.page.getByRole('heading', { name: 'Sign in to go on' }).waitFor();
    await other.page.getByLabel('Reader token').fill('nd7r1_wrong');
    await other.page.getByRole('button', { name: 'Sign in' }).click();
    await other.page.getByText('Not signed in', { exact: true }).waitFor();
    await lookAt(other, 'sign-in-again', true);
    await other.page.getByLabel('Reader token').fill(TOKEN);
    await other.page.getByRole('button', { name: 'Sign in' }).click();
    await other.page.waitForURL(`**${pathOf(desk.world.whole)}?view=receipts`);
    await other.end();
  });

  it('of a log that another key signs raises the whole bar', async () => {
    desk.vault.bend.checkpoint = await desk.world.team.log.checkpoint(desk.world.team.log.size, {
      signer: generateKeyPair(),
    });
    await desk.visit.open('/verify');
    await desk.page.getByRole('contentinfo').getByText('bad-signature').waitFor();
    await lookAt(desk.visit, 'bar-failed', true);
  });
});
