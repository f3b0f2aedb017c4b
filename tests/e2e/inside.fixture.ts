// A world whose client runs inside `nd7 run`: a home that is none of the temporary folder's, since that one is private inside.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { callsIn, clientsFolder, sessionIn, until, World, type Entry } from './claude.fixture.js';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');

/** Where homes can lie: beside those of people for root, in one's own for others. */
function homes(): string {
  if (process.geteuid?.() === 0) return '/home';
  const folder = join(homedir(), '.cache');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** A group of tests of a real client that runs inside; skipped by name where there is none. */
export function withClient(
  title: string,
  found: { path: string } | { problem: string },
  tests: (path: string) => void,
  lacks?: string,
): void {
  const linux = process.platform === 'linux' ? undefined : 'nd7 run confines on Linux';
  const why = 'problem' in found ? found.problem : (linux ?? lacks);
  const group = why === undefined ? describe : describe.skip;
  group(`${title}${why === undefined ? '' : ` (${why})`}`, () => tests('path' in found ? found.path : ''));
}

/** How `nd7 run` is typed: by Node, or by the command that `nd7 init` puts on PATH. */
export type Typed = 'Node' | 'the command on PATH';

/** A world in which the client is started by `nd7 run` in a tier or in the box `bwrap`, and whose user has allowed the model's port. */
export async function insideWorld(
  client: string,
  scenarios: Record<string, unknown> = {},
  tier = 'T1',
  typed: Typed = 'Node',
): Promise<World> {
  const world = await World.make(client, scenarios, homes());
  const kind = tier === 'bwrap' ? '--in' : '--tier';
  if (typed === 'Node') world.before = [process.execPath, BIN, 'run', kind, tier, '--'];
  else {
    world.nd7('init', '--yes');
    world.before = [join(world.home, '.local/bin/nd7'), 'run', kind, tier, '--'];
  }
  allow(world, world.port);
  mkdirSync(join(world.home, '.ssh'), { mode: 0o700 });
  writeFileSync(join(world.home, '.ssh/id_ed25519'), 'SECRET', { mode: 0o600 });
  return world;
}

/** The policy of a user who lets the session reach a service of this machine, and a client that lies in a temporary folder: a checkout may be there. */
export function allow(world: World, port: number): void {
  const clients = { allow: [clientsFolder()] };
  const policy = { nd7: 1, network: { loopback: [port] }, files: { read: clients, exec: clients } };
  mkdirSync(world.nd7Home, { recursive: true, mode: 0o700 });
  writeFileSync(join(world.nd7Home, 'policy.jsonc'), JSON.stringify(policy));
}

/** The chain of the one `nd7 run` of a world, or of its newest. */
export function runChain(world: World): { session: string; entries: Entry[] } {
  const first = (session: string): string =>
    readFileSync(join(world.nd7Home, 'sessions', session, 'log.jsonl'), 'utf8');
  const [session = ''] = world
    .sessions()
    .filter((name) => name.startsWith('run-'))
    .sort((a, b) => (timeOf(first(a)) < timeOf(first(b)) ? 1 : -1));
  return { session, entries: world.entries(session) };
}

/** A step of a scenario that calls Bash. */
export const bash = (command: string, more: object = {}) => ({
  calls: [{ tool: 'Bash', input: { command, description: 'step', ...more } }],
});

export const of = (entries: readonly Entry[], kind: string): Entry[] => entries.filter((entry) => entry.kind === kind);
export const intents = (entries: readonly Entry[]): Entry[] =>
  entries.filter(({ source }) => source === 'intent:claude-code');
export const callOf = ({ data }: Entry): string => data['tool_use_id'] as string;
export const resultOf = (output: readonly Record<string, unknown>[]): Record<string, unknown> | undefined =>
  output.find((line) => line['type'] === 'result');

/** Whether a session's chain has its end and its seal. */
export const closed = (world: World, session: string) => (): boolean =>
  of(world.entries(session), 'session.end').some(({ source }) => source === 'recorder:nd7') &&
  world.entries(session).at(-1)?.kind === 'seal';

/** What the client knows that has been started before: an interactive first start asks its maker's host. */
export function settle(world: World, version: string): void {
  const key = world.environment()['ANTHROPIC_API_KEY'] ?? '';
  const state = {
    hasCompletedOnboarding: true,
    lastOnboardingVersion: version,
    theme: 'dark',
    customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
    projects: { [world.project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  writeFileSync(join(world.home, '.claude.json'), JSON.stringify(state));
}

/** Runs a scenario inside and holds what stands in both chains against what the client printed. */
export async function recorded(world: World, scenario: string, args: string[] = []) {
  const output = await world.run(`[[scenario:${scenario}]] go`, args);
  const session = sessionIn(output);
  if (session === '') throw new Error(`the client said nothing: ${world.said}`);
  await until('the session is sealed', closed(world, session));
  const entries = world.entries(session);
  const run = runChain(world);
  expect(world.verdict(session)).toMatchObject({ verdict: 'intact', entries: entries.length });
  expect(world.verdict(run.session)).toMatchObject({ verdict: 'intact' });
  for (const { peer, data } of intents(entries)) {
    expect(data['session_id']).toBe(session);
    expect(peer).toMatchObject({ run: run.session, client: { pid: expect.any(Number) as number } });
    expect(peer).not.toHaveProperty('duplicate_of');
  }
  // Each names the other, and how far it was.
  const headAt = (chain: readonly Entry[], at: number) => (chain[at] as (Entry & { prev: string }) | undefined)?.prev;
  const confined = of(entries, 'session.confined').at(-1)?.data as { run: string; entries: number; head: string };
  const joined = of(run.entries, 'session.joined').at(-1)?.data as { session: string; entries: number; head: string };
  expect([confined.run, joined.session]).toEqual([run.session, session]);
  expect(confined.head).toBe(headAt(world.entries(run.session), confined.entries));
  expect(joined.head).toBe(headAt(world.entries(session), joined.entries));
  return { output, session, entries, run, calls: callsIn(output) };
}

/** The chains of agents in a world. */
export const agentChains = (world: World): string[] => world.sessions().filter((name) => !name.startsWith('run-'));

/** The folders of doors that are there. */
export const doors = (world: World): string[] =>
  readdirSync(join(world.nd7Home, 'run')).filter((name) => name.startsWith('s-'));

const timeOf = (log: string): string => /"time":"([^"]+)"/.exec(log)?.[1] ?? '';

/** Stands before the model and keeps what it is told. */
export class Listener {
  readonly bodies: string[] = [];
  private static readonly open: Listener[] = [];
  private constructor(private readonly server: Server) {}

  static async before(port: number): Promise<Listener> {
    const server = createServer((asked, answer) => {
      const parts: Buffer[] = [];
      asked.on('data', (part: Buffer) => parts.push(part));
      asked.on('end', () => {
        const body = Buffer.concat(parts);
        listener.bodies.push(body.toString());
        const { method, headers, url: path } = asked;
        request({ port, method, headers, path }, (given) => {
          answer.writeHead(given.statusCode ?? 500, given.headers);
          given.pipe(answer);
        }).end(body);
      });
    });
    const listener = new Listener(server);
    Listener.open.push(listener);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return listener;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** All of them: one that listens on keeps a run of tests from ending. */
  static end(): void {
    for (const { server } of Listener.open.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  }
}
