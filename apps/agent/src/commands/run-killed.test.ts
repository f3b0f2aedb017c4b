// kill -9 of whatever a session consists of, at moments that nobody chose: what was recorded checks out and has an end, nothing of the session goes on, nothing
// of nd7's stays where people work, and the next start works. `ND7_TEST_KILLS` says how many; a few otherwise.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { frontIn } from '../testing/front.fixture.js';
import { BIN, removeThrowAways, throwAway, until } from '../testing/recorder.fixture.js';

const ROUNDS = Number(process.env['ND7_TEST_KILLS'] ?? 8);
/** Agents run as ordinary users. */
const WHO = process.geteuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

let user: string;
let home: string;
let project: string;
let server: Server;
beforeEach(async () => {
  const base = throwAway('nd7-killed-');
  [user, home, project] = [join(base, 'user'), join(base, 'user/.nd7'), join(base, 'user/project')];
  for (const folder of [project, home]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  server = createServer((socket) => socket.on('error', () => undefined).write('hello\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  writeFileSync(join(home, 'policy.jsonc'), JSON.stringify({ nd7: 1, network: { loopback: [port] } }), { mode: 0o600 });
  writeFileSync(join(project, 'agent.sh'), agent(port), { mode: 0o755 });
  chmodSync(base, 0o755);
});
afterEach(() => {
  for (const { pid } of processes()) kill(pid);
  server.close();
  removeThrowAways();
});

/** What an agent does: hooks, commands by the broker, tunnels, protected names. */
const agent = (port: number): string => `#!/bin/sh
S=\${CLAUDE_CODE_SHELL:-/bin/bash}
echo up
for i in 1 2 3 4; do
  echo '{"session_id":"killed-'$$'","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo '$i'"},"tool_use_id":"t'$i'"}' | "$HOME/.nd7/bin/nd7-shim" --home "$HOME/.nd7" --agent claude-code >/dev/null 2>&1
  "$S" -c "echo $i; exec 3<>/dev/tcp/127.0.0.1/${port}; read line <&3; sleep 0.05" >/dev/null 2>&1
  touch .envrc .git/hooks/x 2>/dev/null
  echo $i > out
done
exit 7
`;

interface Process {
  pid: number;
  start: string;
  parent: number;
  words: string[];
}

function read(pid: number): (Process & { isOwn: boolean }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(0, -1);
    const environ = readFileSync(`/proc/${pid}/environ`, 'latin1');
    return { pid, start: fields[19] ?? '', parent: Number(fields[1]), words, isOwn: environ.includes(user) };
  } catch {
    return undefined;
  }
}

/** All that belongs to this home, by its environment or by whose child it is. */
function processes(): Process[] {
  const all = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
    .flatMap((pid) => read(pid) ?? []);
  const own = new Set(all.filter(({ isOwn }) => isOwn).map(({ pid }) => pid));
  for (let before = -1; before !== own.size;) {
    before = own.size;
    for (const { pid, parent } of all) if (own.has(parent)) own.add(pid);
  }
  return all.filter(({ pid }) => own.has(pid) && pid !== process.pid);
}

const isThere = ({ pid, start }: Process): boolean => read(pid)?.start === start;
/** They outlive sessions. */
const isResident = ({ words }: Process): boolean => words.includes('host') || words.includes('recorder');

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

const how = () => ({
  cwd: project,
  env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: user, SHELL: '/bin/bash', LANG: 'C.UTF-8' },
  ...WHO,
});
const nd7 = (...args: string[]) =>
  spawnSync(process.execPath, [BIN, ...args], { ...how(), encoding: 'utf8', timeout: 60_000 });

/** How it ended, in time. */
async function endOf(child: ChildProcess): Promise<string> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => (limit = setTimeout(done, 20_000)));
  if (child.exitCode === null && child.signalCode === null) await Promise.race([once(child, 'exit'), late]);
  clearTimeout(limit);
  return String(child.signalCode ?? child.exitCode ?? 'hangs');
}

function own(path: string): void {
  if (WHO.uid !== undefined) chownSync(path, WHO.uid, WHO.gid);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) own(join(path, entry.name));
    else if (WHO.uid !== undefined) chownSync(join(path, entry.name), WHO.uid, WHO.gid);
  }
}

it.each([
  ['the front', 'T1'],
  ['node', 'T1'],
  ['the front', 'T2'],
] as const)(
  'typed as %s, in tier %s',
  async (by, tier) => {
    const typed = by === 'node' ? [process.execPath, BIN] : [frontIn(home)];
    own(user);
    spawnSync('git', ['init', '-q'], how());
    const before = tree(project);
    expect(nd7('run', '--', 'true').status).toBe(0);
    for (let round = 0; round < ROUNDS; round++) {
      const [program = '', ...words] = [...typed, 'run', '--tier', tier, '--agent', 'claude-code', '--', './agent.sh'];
      const child = spawn(program, words, { ...how(), stdio: ['ignore', 'ignore', 'pipe'] });
      let stderr = '';
      child.stderr?.on('data', (bytes: Buffer) => (stderr += String(bytes)));
      const after = Math.floor(Math.random() * 600);
      await new Promise((done) => setTimeout(done, after));
      const there = processes();
      // One of them, or two at once.
      const victims = there.toSorted(() => Math.random() - 0.5).slice(0, 1 + Math.floor(Math.random() * 2));
      for (const { pid } of victims) kill(pid);
      const names = victims.map(({ words: of }) => of.slice(0, 4).join(' ').slice(-60)).join(' and ');
      const what = `round ${round}: ${names} after ${after} ms of ${there.length}`;
      if (process.env['ND7_TEST_KILLS'] !== undefined) process.stderr.write(`${what}\n`);
      const end = await endOf(child);
      const context = `${what}: ${end}\n${stderr}`;
      if (end === 'hangs') throw new Error(`${context}\n${list(processes())}`);
      const gone = async (): Promise<boolean> => {
        await new Promise((done) => setTimeout(done, 5));
        return ![...there, ...processes()].some((one) => isThere(one) && !isResident(one));
      };
      await until(`the end of all that was inside; ${context}`, gone, 5000).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${list([...there, ...processes()].filter((one) => isThere(one)))}`);
      });
      const next = spawnSync(program, [...typed.slice(1), 'run', '--tier', tier, '--', 'sh', '-c', 'exit 5'], {
        ...how(),
        encoding: 'utf8',
        timeout: 30_000,
      });
      expect([context, next.status, next.stderr]).toEqual([context, 5, '']);
      rmSync(join(project, 'out'), { force: true });
      expect([context, tree(project)]).toEqual([context, before]);
      const verified = nd7('verify', '--all', '--json');
      expect([context, verified.status, verified.stderr]).toEqual([context, 0, '']);
      // The agent's chain ends when a recorder looks, within seconds; those of nd7 run by the next start.
      const lacking = chains('run-').filter(
        (log) => log.includes('"kind":"enforcement"') && !log.includes('"kind":"session.end"'),
      );
      expect([context, lacking]).toEqual([context, []]);
      // Of a session that has ended one key is left, by which nothing is signed.
      const keys = readdirSync(join(home, 'keys/sessions')).filter((name) => name.startsWith('run-'));
      const several = keys.filter((name) => readdirSync(join(home, 'keys/sessions', name)).length > 1);
      expect([context, several]).toEqual([context, []]);
      await until(`only the living have folders; ${context}`, () => left().length === 0, 5000).catch(
        (error: unknown) => {
          throw new Error(`${String(error)}\n${left().join('\n')}`);
        },
      );
    }
  },
  60_000 + ROUNDS * 30_000,
);

it('a recorder that is there writes the end of a session at once, also of one without an agent', async () => {
  own(user);
  const recorder = spawn(process.execPath, [BIN, 'recorder'], { ...how(), stdio: 'ignore' });
  await until('the recorder', () => existsSync(join(home, 'run/hook')));
  const child = spawn(process.execPath, [BIN, 'run', '--', 'sh', '-c', 'echo up; sleep 1000'], {
    ...how(),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  expect(left()).toHaveLength(3);
  child.kill('SIGKILL');
  await until('its end', () => left().length === 0, 10_000);
  expect(chains('run-').join('')).toContain('"reason":"process gone","noticed":"its front hung up"');
  recorder.kill();
  await endOf(recorder);
}, 60_000);

function chains(prefix: string): string[] {
  return readdirSync(join(home, 'sessions'))
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(home, 'sessions', name, 'log.jsonl'))
    .flatMap((path) => (existsSync(path) ? [readFileSync(path, 'utf8')] : []));
}

const left = (): string[] => readdirSync(join(home, 'run')).filter((name) => /^[sc]-/.test(name));

const list = (all: readonly Process[]): string =>
  all.map(({ pid, parent, words }) => `${pid} ${parent} ${words.join(' ').slice(0, 120)}`).join('\n');

function tree(folder: string): string[] {
  return readdirSync(folder, { recursive: true }).map(String).sort();
}
