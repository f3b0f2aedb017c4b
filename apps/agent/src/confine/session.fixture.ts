// A confined session with the way out that `nd7 run` gives it, whose internet is servers of the test: names resolve to public addresses, and dialling one of
// those ends at a server on loopback. Everything else (launcher, namespaces, rules, proxy, programs) is the real thing.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findLauncher, launch, prepare, type Launched } from '@nd7/confine';
import type { EgressDecision } from '@nd7/egress';
import { throwAway } from '../testing/recorder.fixture.js';
import { listenersOf, wayOut, type WayOutInput } from './egress.js';
import { OwnListeners } from './own-listeners.js';
import { OutsidePrograms } from './outside-programs.js';
import { Reach } from './reach.js';
import { rulesetFor } from './ruleset.js';

export interface Said {
  code: number | null;
  stdout: string;
  stderr: string;
}

export class TestSession {
  readonly home = join(throwAway('nd7-session-'), 'home');
  readonly project = join(this.home, 'project');
  readonly nd7Home = join(this.home, '.nd7');
  readonly decisions: EgressDecision[] = [];
  /** Names that were looked up outside. */
  readonly lookedUp: string[] = [];
  readonly environment: Record<string, string> = { PATH: process.env['PATH'] ?? '', HOME: this.home, LANG: 'C.UTF-8' };
  /** Roots that the proxy believes, where it speaks TLS itself. */
  tls: NonNullable<WayOutInput['internet']>['tls'];
  /** What holds the session. */
  tier: 'T1' | 'T2' = 'T1';
  /** What the session was let write, as soon as it runs. */
  reach: Reach | undefined;
  readonly #names = new Map<string, string>();
  readonly #places = new Map<string, number>();
  readonly #servers: Server[] = [];
  readonly #connections = new Set<Socket>();

  constructor(policy: Record<string, unknown>) {
    for (const folder of [this.project, this.nd7Home]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.nd7Home, 'policy.jsonc'), JSON.stringify({ nd7: 1, ...policy }), { mode: 0o600 });
  }

  /** A server that the world outside has under a name and port. */
  async host(name: string, port: number, server: Server): Promise<void> {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.place(name, port, (server.address() as AddressInfo).port);
  }

  /** The same for a server that listens on loopback already. */
  place(name: string, port: number, at: number): void {
    const address = this.#names.get(name) ?? `93.184.216.${String(this.#names.size + 1)}`;
    this.#names.set(name, address);
    this.#places.set(`${address} ${String(port)}`, at);
  }

  /** A certificate for names, and the folder that it lies in with its key: `cert.pem`, `key.pem`. */
  certificate(...names: string[]): { cert: string; key: string } {
    const [cert, key] = [join(this.project, 'cert.pem'), join(this.home, 'key.pem')];
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`];
    execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return { cert, key };
  }

  /** Starts a program inside; `running` is told once it runs. */
  async run(
    argv: readonly string[],
    running: (session: Launched) => Promise<void> = () => Promise.resolve(),
  ): Promise<Said> {
    const { ruleset } = rulesetFor({ ...this, profile: null, agent: undefined, environment: this.environment });
    this.reach = Reach.alone(ruleset);
    const own = this.tier === 'T2' ? await OwnListeners.open(listenersOf(ruleset)) : undefined;
    const out = wayOut({
      ruleset,
      ...(own && { own: own.ports, files: 'in place' }),
      nd7Home: this.nd7Home,
      environment: this.environment,
      outside: OutsidePrograms.of(ruleset, this.reach, this.environment),
      record: (decision) => {
        this.decisions.push(decision);
        return Promise.resolve();
      },
      internet: this.#internet(),
    });
    const launcher = await findLauncher();
    if ('problem' in launcher) throw new Error(launcher.problem);
    const prepared = prepare({
      ...out,
      ruleset,
      argv,
      environment: this.environment,
      variables: out.environment,
      cwd: this.project,
      nd7Home: this.nd7Home,
      tier: this.tier,
      userNamespace: this.tier === 'T1',
      isRoot: process.geteuid?.() === 0,
      isObserved: true,
      isFront: false,
    });
    const session = launch(launcher.path, prepared.plan, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(own && { doors: { announced: (port) => own.announced(port), opened: (socket) => socket.destroy() } }),
      front: { judge: () => Promise.resolve({ allow: true }), heard: () => undefined },
    });
    try {
      const { stdout, stderr } = session.process;
      const said = Promise.all([stdout, stderr].map((stream) => (stream === null ? '' : text(stream))));
      if (own === undefined) void session.listeners.then((opened) => out.serve(opened));
      else out.serve(own.served);
      if ((await session.started) !== undefined) await running(session);
      const { code, failure } = await session.ended;
      if (failure !== undefined) throw new Error(JSON.stringify(failure));
      const [told = '', complained = ''] = await said;
      return { code, stdout: told, stderr: complained };
    } finally {
      session.signal('SIGKILL');
      await session.ended;
      for (const opened of await session.listeners) opened.close();
      out.close();
      own?.close();
      prepared.clean();
    }
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#connections) socket.destroy();
  }

  #internet(): NonNullable<WayOutInput['internet']> {
    return {
      ...(this.tls && { tls: this.tls }),
      resolve: (name) => {
        this.lookedUp.push(name);
        const address = this.#names.get(name);
        if (address !== undefined) return Promise.resolve([address]);
        return Promise.reject(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }));
      },
      // Port 1 of loopback refuses, as what is not there does.
      at: (address, port) => ({
        address: '127.0.0.1',
        port: this.#places.get(`${address} ${String(port)}`) ?? 1,
      }),
    };
  }
}
