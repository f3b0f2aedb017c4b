// Every page, in both themes, wide and narrow: it draws, nothing is blocked by the policy, nothing overflows, no accessibility finding.
import { inChromium } from './fixtures/chromium.js';
import { Desk, pathOf } from './fixtures/desk.js';
import { TOKEN } from './fixtures/server.js';
import { lookAt } from './fixtures/look.js';
import { Visit } from './fixtures/visit.js';

const desk = new Desk();
const DONE = { hasText: /Unchanged|Changed|missing|second history/ };

/** Each page: how to get there, and what must stand there before it is looked at. */
const pages: Record<string, (visit: Visit) => Promise<void>> = {
  sessions: async ({ page }) => {
    await page.getByRole('row', { name: /7962b8a7/ }).waitFor();
  },
  session: async (visit) => {
    await visit.go(pathOf(desk.world.whole));
    await visit.page.locator('h1', DONE).waitFor();
    await visit.page.getByRole('button', { name: /Bash.*echo hello/ }).click();
  },
  'session-open': async (visit) => {
    await visit.go(pathOf(desk.world.open));
    await visit.page.locator('h1', DONE).waitFor();
  },
  'session-entries': async (visit) => {
    await visit.go(`${pathOf(desk.world.whole)}?view=entries`);
    await visit.page.locator('h1', DONE).waitFor();
  },
  'session-receipts': async (visit) => {
    await visit.go(`${pathOf(desk.world.whole)}?view=receipts`);
    await visit.page.getByText('holds').first().waitFor();
  },
  'session-segments': async (visit) => {
    await visit.go(`${pathOf(desk.world.whole)}?view=segments`);
    await visit.page.locator('h1', DONE).waitFor();
  },
  'session-edited': async (visit) => {
    await visit.go(pathOf(desk.world.edited));
    await visit.page.locator('h1', DONE).waitFor();
  },
  'session-hostile': async (visit) => {
    await visit.go(pathOf(desk.world.hostile));
    await visit.page.locator('h1', DONE).waitFor();
    await visit.page.getByRole('button', { name: /Bash.*invoice/ }).click();
  },
  verification: async (visit) => {
    await visit.go(`${pathOf(desk.world.whole)}/verification`);
    await visit.page.getByText('Inclusion proof, step by step').waitFor();
    await visit.page.getByText(/Step 0 of/).waitFor();
    for (let i = 0; i < 6; i++) await visit.page.keyboard.press('ArrowRight');
  },
  'verification-edited': async (visit) => {
    await visit.go(`${pathOf(desk.world.edited)}/verification`);
    await visit.page.getByText('What was not checked').waitFor();
  },
  verify: async (visit) => {
    await visit.go('/verify');
    await visit.page.getByText('Drop files').waitFor();
  },
  incidents: async (visit) => {
    await visit.go('/incidents');
    await visit.page.getByText('INC-142').waitFor();
  },
  incident: async (visit) => {
    await visit.go('/incidents/INC-142');
    await visit.page.getByText('both signatures checked here').waitFor();
  },
  'incident-of-silence': async (visit) => {
    await visit.go('/incidents/INC-140');
    await visit.page.getByRole('heading', { name: 'is shorter than it was' }).waitFor();
  },
  machines: async (visit) => {
    await visit.go('/machines');
    await visit.page.getByText('tomas-x1').waitFor();
  },
};

inChromium('every page, in both themes, wide and narrow', () => {
  desk.oneReader();

  it.each(Object.keys(pages))('%s', async (name) => {
    await pages[name]!(desk.visit);
    await desk.page.getByText(/Checkpoint [\d,]+ verified here/).waitFor();
    await lookAt(desk.visit, name);
  });

  it('the list of sessions has room for all of its columns, whatever the width', async () => {
    await desk.visit.go('/sessions');
    await desk.page.getByRole('row', { name: /7962b8a7/ }).waitFor();
    for (const width of [1600, 1481, 1480, 1280, 1279, 1181, 1024, 800]) {
      await desk.page.setViewportSize({ width, height: 900 });
      const hidden = await desk.page
        .getByRole('grid', { name: 'Sessions' })
        .evaluate((grid) => (grid.parentElement?.scrollWidth ?? 0) - (grid.parentElement?.clientWidth ?? 0));
      expect([width, hidden]).toEqual([width, 0]);
    }
  });

  it('sign-in, with no key to pin, and the keyboard map', async () => {
    const other = await Visit.begin(desk.browser, desk.vault);
    await other.open('/sign-in');
    await other.page.getByLabel('Reader token').waitFor();
    await lookAt(other, 'sign-in');
    await other.page.goto('about:blank');
    await other.open(`/sign-in#token=${TOKEN}`);
    await other.page.getByRole('heading', { name: 'no key pinned: nothing is verified' }).waitFor();
    await lookAt(other, 'sign-in-unpinned');
    await other.page.getByRole('button', { name: 'Go on without' }).click();
    await other.page.waitForURL('**/sessions');
    await other.go('/verify');
    await other.page.getByText('Drop files').waitFor();
    await other.page.keyboard.press('?');
    await other.page.getByRole('dialog').waitFor();
    await lookAt(other, 'keyboard-map');
    await other.end();
  });
});
