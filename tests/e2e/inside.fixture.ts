// A world whose client runs inside `nd7 run`: a home that is none of the temporary folder's, since that one is private inside.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { clientsFolder, World, type Entry } from './claude.fixture.js';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');

/** Where homes can lie: beside those of people for root, in one's own for others. */
function homes(): string {
  if (process.geteuid?.() === 0) return '/home';
  const folder = join(homedir(), '.cache');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** A world in which the client is started by `nd7 run`, and whose user has allowed the model's port. */
export async function insideWorld(
  client: string,
  scenarios: Record<string, unknown> = {},
  tier = 'T1',
): Promise<World> {
  const world = await World.make(client, scenarios, homes());
  world.before = [process.execPath, BIN, 'run', '--tier', tier, '--'];
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
