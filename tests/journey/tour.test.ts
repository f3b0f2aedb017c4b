// `npm run tour` as a process: what it shows in the terminal, and the fork as it then stands on the dashboard.
import type { Browser } from 'playwright-core';
import { inChromium, startChromium } from '../browser/fixtures/chromium.js';
import { Visit } from '../browser/fixtures/visit.js';
import { Task } from './task.fixture.js';

describe('npm run tour', () => {
  let tour: Task;
  let link: string;

  beforeAll(async () => {
    tour = new Task(['tour', '--stay'], { ND7_PORT: '4370' });
    [, link = ''] = await tour.says(/The incident, with both heads: (http\S+)\n/);
  });
  afterAll(async () => {
    expect((await tour.interrupt()).code).toBe(0);
  });

  it('catches every rewriting it shows', () => {
    expect(tour.output).toMatch(/receipt-mismatch/);
    expect(tour.output).not.toMatch(/not what the tour expected/);
  });

  inChromium('on the dashboard', () => {
    let browser: Browser;
    let visit: Visit;
    beforeAll(async () => {
      browser = await startChromium();
      visit = await Visit.begin(browser, { url: new URL(link).origin, signInUrl: link });
      await visit.page.goto(link);
    });
    afterAll(() => browser.close());
    afterEach(async () => {
      expect(await visit.wrong()).toEqual([]);
    });

    it('the fork is an incident with both heads, whose two signatures are checked there', async () => {
      const [, count = ''] = /fork at (\d+) entries/.exec(tour.output) ?? [];
      const heads = [...tour.output.matchAll(/claim of entries .* head ([0-9a-f]{16})…/g)].map((match) => match[1]);
      expect(new Set(heads).size).toBe(2);
      await visit.page
        .getByRole('navigation', { name: 'Main' })
        .getByText(/^[1-9]\d* open$/)
        .waitFor();
      await visit.page.getByRole('link', { name: /sent a second history/ }).click();
      await visit.page.getByText('both signatures checked here').waitFor();
      expect(await visit.page.getByText('signature checked here', { exact: true }).count()).toBe(2);
      const text = await visit.page.getByRole('main').innerText();
      expect(text).toContain(`Hash after ${count} entries`);
      for (const head of heads) expect(text).toContain(head);
    });

    it('the session is not called verified whole: its machine signed a second history', async () => {
      await visit.page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Sessions' }).click();
      const row = visit.page.getByRole('row').filter({ hasText: 'forked' });
      await row.getByRole('link').click();
      await visit.page
        .locator('h1')
        .filter({ hasText: /^The machine signed a second history of this session\. Unchanged/ })
        .waitFor();
    });
  });
});
