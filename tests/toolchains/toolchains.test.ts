// Each toolchain's small real job: what works outside works inside, with the same result, or docs/limits.md says that it does not.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { whyNoMachine } from '../e2e/managed.fixture.js';
import { jobs, lacks, Workbench, type Job } from './workbench.fixture.js';

const LIMITS = readFileSync(join(import.meta.dirname, '../../docs/limits.md'), 'utf8').replace(/\s+/g, ' ');
const isRoot = process.geteuid?.() === 0;

const onLinux = process.platform === 'linux' ? describe : describe.skip;

for (const who of ['user', 'root'] as const) {
  const why = who === 'root' ? (isRoot ? undefined : 'needs root') : isRoot ? whyNoMachine() : undefined;
  (why === undefined ? onLinux : describe.skip)(`toolchains, as ${who}${why === undefined ? '' : ` (${why})`}`, () => {
    let bench: Workbench;
    const expected = new Map<Job, string>();
    beforeAll(async () => {
      bench = await Workbench.make(who);
    });
    afterAll(() => bench.end());

    for (const job of jobs.filter(({ only }) => only === undefined || only.who === who)) {
      const missing = lacks(job);
      const test = missing === undefined ? it : it.skip;
      const title = `${job.name}${missing === undefined ? '' : ` (${missing})`}`;
      test(`${title}, outside`, () => {
        const ran = bench.run(job, 'outside');
        expect([ran.status, ran.status === 0 ? '' : ran.err]).toEqual([0, '']);
        expect(ran.out).not.toBe('');
        expected.set(job, ran.out);
      });
      for (const tier of ['T1', 'T2'] as const) {
        const limit = job.fails.find((one) => one.tier === tier && (one.who ?? who) === who);
        test(`${title}, in ${tier}${limit === undefined ? '' : limit.may ? ', need not work' : ', does not work'}`, () => {
          const ran = bench.run(job, tier);
          if (limit !== undefined) {
            expect(LIMITS).toContain(limit.words);
            if (!limit.may) expect(ran.status).not.toBe(0);
            if (ran.status !== 0) return;
          }
          expect([ran.status, ran.status === 0 ? '' : ran.err]).toEqual([0, '']);
          expect(ran.out).toBe(expected.get(job));
        });
      }
    }
  });
}
