// The newcomer's way: `npm start` as a process, twice on one data folder.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Desk } from './desk.fixture.js';
import { Task, task } from './task.fixture.js';

const folders: string[] = [];
const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'nd7-journey-'));
  chmodSync(path, 0o711); // else root's cluster, which runs as another user, lies beside it and is left behind
  folders.push(path);
  return path;
};
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true });
});

describe('npm start', () => {
  it('does the main job, says where to look, ends on Ctrl-C, and goes on with its data', async () => {
    const dir = folder();
    const first = await task(['start'], { ND7_DEV_DIR: dir, ND7_PORT: '4310' }, /Look at the session/);
    expect(first.output).toMatch(/PostgreSQL: PostgreSQL \d+/);
    expect(first.output).toMatch(/verified, \d+ entries intact, \d+ receipts hold/);
    expect(first.output).toMatch(/http:\/\/127\.0\.0\.1:\d+\/sign-in#token=/);
    expect(first.code).toBe(0);
    const key = readFileSync(join(dir, 'home/keys/machine.key'), 'utf8');

    const second = await task(['start', '--once'], { ND7_DEV_DIR: dir, ND7_PORT: '4310' });
    expect(second.output).toMatch(/receipts hold/);
    expect(second).toMatchObject({ code: 0 });
    expect(readFileSync(join(dir, 'home/keys/machine.key'), 'utf8')).toBe(key);

    const third = await task(['start', '--once', '--fresh'], { ND7_DEV_DIR: dir, ND7_PORT: '4310' });
    expect(third.output).not.toMatch(/✗|^nd7:/m);
    expect(third).toMatchObject({ code: 0 });
    expect(readFileSync(join(dir, 'home/keys/machine.key'), 'utf8')).not.toBe(key);
  });

  it('prints what to type to record one’s own Claude Code, and that is enough', async () => {
    const start = new Task(['start'], { ND7_DEV_DIR: folder(), ND7_PORT: '4410' });
    const desk = new Desk();
    try {
      await start.says(/Look at the session/);
      const [init = '', enrol = ''] = [...start.output.matchAll(/npx --no nd7 (?:init|enrol \S+ \S+)$/gm)].map(String);
      expect([init, enrol]).toEqual([
        'npx --no nd7 init',
        expect.stringContaining(' enrol http://127.0.0.1:44') as string,
      ]);
      const typed = async (line: string): Promise<string> => {
        const { code, stdout, stderr } = await desk.shell(line);
        expect([line, code, code === 0 ? '' : stdout + stderr]).toEqual([line, 0, '']);
        return stdout;
      };
      // Nobody is there to say yes.
      await typed(`${init} --yes`);
      await typed(enrol);
      await desk.call('mine');
      await desk.untilShipped('mine');
      expect(await typed('npx --no nd7 sessions')).toContain('mine');
      expect(await typed('npx --no nd7 verify mine --receipts')).toMatch(/receipt/);
      await typed('npx --no nd7 uninstall');
    } finally {
      await desk.remove();
      expect((await start.interrupt()).code).toBe(0);
    }
  });

  it('works with the PostgreSQL that npm brings', async () => {
    const run = await task(['start', '--once', '--postgres', 'embedded'], { ND7_DEV_DIR: folder(), ND7_PORT: '4330' });
    expect(run.output).toMatch(/PostgreSQL 18.* from npm/);
    expect(run.code).toBe(0);
  });

  it('takes no second start on one data folder', async () => {
    const dir = folder();
    const busy = task(['start'], { ND7_DEV_DIR: dir, ND7_PORT: '4350' });
    while (!existsSync(join(dir, 'running'))) await new Promise((next) => setTimeout(next, 50));
    const second = await task(['start', '--once'], { ND7_DEV_DIR: dir, ND7_PORT: '4350' });
    expect(second.output).toMatch(/another start is running here \(pid \d+\)/);
    expect(second.code).toBe(1);
    const pid = Number(readFileSync(join(dir, 'running'), 'utf8'));
    process.kill(pid, 'SIGTERM');
    expect((await busy).code).toBe(0);
  });

  it.each([[['--port', 'many']], [['--postgres', 'oracle']], [['--colour']]])(
    'refuses %j with exit 2',
    async (args) => {
      expect((await task(['start', ...args], { ND7_DEV_DIR: folder() })).code).toBe(2);
    },
  );
});
