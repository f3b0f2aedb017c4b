// A real recorder and a real vault: what the vault makes of a machine that is killed, that says it goes, and of an alarm in a session.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Desk } from './desk.fixture.js';
import { RealVault, ROOT, until } from './real-vault.fixture.js';

/** The resident recorder with a heartbeat a second, so that nobody waits for minutes. */
const RECORDER = `
import { runRecorder } from ${JSON.stringify(join(ROOT, 'apps/agent/dist/recorder/run.js'))};
await runRecorder(process.env.ND7_HOME, { heartbeatMs: 1000 });
`;

interface Incident {
  kind: string;
  session?: string;
  state: string;
  over?: { why: string };
}

let vault: RealVault;
let desk: Desk;
let reader: string;
let recorder: ChildProcess;
beforeAll(async () => {
  vault = await RealVault.start({ ND7_VAULT_WATCH_EVERY: '1', ND7_VAULT_QUIET_AFTER: '6' });
  reader = await vault.reader();
  desk = new Desk();
  await desk.enrol(vault);
});
afterAll(async () => {
  recorder.kill('SIGKILL');
  await desk.remove();
  await vault.stop();
});

async function incidents(kind: string): Promise<Incident[]> {
  const answer = await fetch(`${vault.url}/v1/incidents`, { headers: { authorization: `Bearer ${reader}` } });
  const { incidents: all } = (await answer.json()) as { incidents: Incident[] };
  return all.filter((one) => one.kind === kind);
}
const begin = async (): Promise<void> => {
  recorder = spawn(process.execPath, ['--input-type=module', '-e', RECORDER], { env: desk.env, stdio: 'ignore' });
  await until('the recorder answers', async () => (await desk.json('status'))['recorder'] !== null);
};
const end = async (signal: NodeJS.Signals): Promise<void> => {
  const gone = new Promise((resolve) => recorder.once('exit', resolve));
  recorder.kill(signal);
  await gone;
};
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it('a recorder that is killed is missed, is heard again, and one that says it goes is not missed', async () => {
  await desk.stopRecorder();
  await begin();
  await desk.call('s');
  await until('the vault has heard of it', async () => {
    const { last } = ((await desk.json('status'))['heartbeat'] ?? {}) as { last?: string | null };
    return typeof last === 'string';
  });
  expect(await incidents('machine-quiet')).toEqual([]);

  await end('SIGKILL');
  await until('the vault misses it', async () => (await incidents('machine-quiet')).length === 1);
  expect(await incidents('machine-quiet')).toMatchObject([{ state: 'open' }]);

  await begin();
  await desk.call('s');
  await until('it is over', async () => (await incidents('machine-quiet'))[0]?.state === 'over');
  expect((await incidents('machine-quiet'))[0]?.over).toMatchObject({ why: 'heard' });

  await end('SIGTERM');
  await pause(10_000);
  expect(await incidents('machine-quiet')).toHaveLength(1);

  await begin();
  await desk.say('s', 'SessionEnd', { reason: 'other' });
  await until('rest is announced', async () => {
    const { away } = ((await desk.json('status'))['heartbeat'] ?? {}) as { away?: string };
    return away === 'idle';
  });
  await end('SIGKILL');
  await pause(10_000);
  expect(await incidents('machine-quiet')).toHaveLength(1);
  expect(await incidents('tail-shrank')).toEqual([]);
});

it('an alarm in a session is an incident', async () => {
  await begin();
  const settings = join(desk.home, '..', 'project', '.claude', 'settings.json');
  mkdirSync(join(settings, '..'), { recursive: true });
  writeFileSync(settings, '{"disableAllHooks": true}');
  await desk.say('t', 'ConfigChange', { source: 'project_settings', file_path: settings });
  await until('the incident', async () => (await incidents('alarm')).length > 0);
  expect(await incidents('alarm')).toMatchObject([{ session: 't' }]);
});
