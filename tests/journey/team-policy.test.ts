// A team's policy on a developer's machine, from a real vault on a real PostgreSQL: it holds in sessions, nobody here loosens it, and what is not it starts nothing.
import { copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Desk } from './desk.fixture.js';
import { RealVault, ROOT, until } from './real-vault.fixture.js';

const BIN = join(ROOT, 'apps/agent/bin/nd7.js');
let vault: RealVault;
let desk: Desk;
let project: string;
beforeAll(async () => {
  vault = await RealVault.start();
  desk = new Desk();
  await desk.enrol(vault);
  project = join(realpathSync(join(desk.home, '..')), 'project');
  mkdirSync(join(project, 'vendor'), { recursive: true });
}, 120_000);
afterAll(async () => {
  await desk.remove();
  await vault.stop();
});

const kept = (): string => join(desk.home, 'team-policy.json');
function nd7(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
    cwd: project,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: join(desk.home, '..'), ND7_HOME: desk.home },
  });
  return { status, stdout, stderr };
}
async function set(policy: object): Promise<void> {
  const file = join(desk.home, '..', 'team.jsonc');
  writeFileSync(file, JSON.stringify(policy));
  await vault.admin('policy', 'set', 'acme', file);
}
const TEAM = { nd7: 1, files: { write: { deny: ['./vendor'] } }, network: { deny: ['registry.npmjs.org'] } };

it('holds once it was fetched, over what the person allows, and says whose word it is', async () => {
  expect(nd7('policy', 'pull')).toMatchObject({ status: 0, stdout: 'the team has no policy\n' });
  await set(TEAM);
  expect(JSON.parse(nd7('policy', 'pull', '--json').stdout)).toEqual({ version: 1, changed: true });
  expect(JSON.parse(nd7('policy', 'pull', '--json').stdout)).toEqual({ version: 1, changed: false });
  writeFileSync(
    join(desk.home, 'policy.jsonc'),
    '{"nd7": 1, "files": {"write": {"allow": ["./vendor"]}}, "network": {"allow": ["registry.npmjs.org"]}}',
  );
  const shown = JSON.parse(nd7('policy', 'show', '--json').stdout) as {
    layers: { layer: string; file: string | null }[];
  };
  expect(shown.layers).toContainEqual(expect.objectContaining({ layer: 'team', file: kept() }));
  expect(nd7('why', join(project, 'vendor/x')).stdout).toMatch(/team/);
  expect(nd7('run', '--', 'sh', '-c', 'echo x > fine; echo x > vendor/x; ls vendor')).toMatchObject({
    status: 0,
    stdout: '',
  });
  expect(readFileSync(join(project, 'fine'), 'utf8')).toBe('x\n');
  expect(nd7('why', 'registry.npmjs.org').stdout).toMatch(/team/);
}, 120_000);

it('starts nothing where it was changed, taken away, or put back to an older one; and holds again once it is fetched', async () => {
  const start = () => nd7('run', '--', 'echo', 'ran');
  const first = join(desk.home, '..', 'first.json');
  await set(TEAM);
  nd7('policy', 'pull');
  copyFileSync(kept(), first);
  expect(start()).toMatchObject({ status: 0, stdout: 'ran\n' });
  const text = readFileSync(kept(), 'utf8');
  writeFileSync(kept(), text.replace('./vendor', './vendoR'));
  expect(start()).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/is not what vault\.test\/acme signed \(other-bytes\)[^]*nd7 policy pull/) as string,
  });
  writeFileSync(kept(), text.replace('version 1', 'version 9'));
  expect(start()).toMatchObject({ status: 2, stdout: '' });
  writeFileSync(kept(), '{');
  expect(start()).toMatchObject({ status: 2, stdout: '' });
  rmSync(kept());
  expect(start()).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/is not there, and this machine has seen version 1/) as string,
  });
  for (const command of [
    ['why', '/etc'],
    ['policy', 'show'],
    ['learn', '--', 'true'],
  ])
    expect(nd7(...command).status).toBe(2);
  expect(nd7('policy', 'pull').status).toBe(0);
  expect(start()).toMatchObject({ status: 0, stdout: 'ran\n' });
  await set({ nd7: 1 });
  expect(nd7('policy', 'pull')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^version 2 /) as string });
  copyFileSync(first, kept());
  expect(start()).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/has version 1, and this machine has seen 2/) as string,
  });
  expect(nd7('policy', 'pull').status).toBe(0);
  expect(start()).toMatchObject({ status: 0, stdout: 'ran\n' });
}, 120_000);

it('is fetched by the recorder beside its heartbeats, and at enrolment', async () => {
  await set(TEAM);
  const version = (): unknown => (JSON.parse(readFileSync(kept(), 'utf8')) as { version: unknown }).version;
  await desk.say('one', 'SessionStart', { source: 'startup' });
  await until('the recorder has fetched it', () => version() === 3);
  const other = new Desk();
  try {
    await other.enrol(vault);
    expect(JSON.parse(readFileSync(join(other.home, 'team-policy.json'), 'utf8'))).toMatchObject({ version: 3 });
  } finally {
    await other.remove();
  }
}, 120_000);

it('is looked at by nd7 doctor, and fetched by nd7 ship, which tells of it once', async () => {
  interface Check {
    name: string;
    state: string;
    text: string;
  }
  const row = (): Check | undefined =>
    (JSON.parse(nd7('doctor', '--json').stdout) as { checks: Check[] }).checks.find(
      ({ name }) => name === 'team policy',
    );
  expect(row()).toMatchObject({
    state: 'ok',
    text: expect.stringMatching(
      /^version 3, signed by the key of vault\.test\/acme that is pinned, here since \d{4}-[^;]+; the vault has no newer one$/,
    ) as string,
  });
  await set({ nd7: 1, network: { deny: ['a.example'] } });
  expect(row()).toMatchObject({ state: 'note', text: expect.stringMatching(/; the vault has version 4$/) as string });
  expect(nd7('ship').stdout).toMatch(/^version 4 of the team’s policy holds from the next session on$/m);
  expect(nd7('ship').stdout).not.toContain('policy');
  expect(JSON.parse(nd7('ship', '--json').stdout)).toMatchObject({ team_policy: { version: 4, changed: false } });
  expect(row()).toMatchObject({ state: 'ok' });
  const text = readFileSync(kept(), 'utf8');
  writeFileSync(kept(), text.replace('a.example', 'b.example'));
  expect(row()).toMatchObject({ state: 'bad', text: expect.stringMatching(/^nothing starts here: /) as string });
  writeFileSync(kept(), text);
}, 120_000);
