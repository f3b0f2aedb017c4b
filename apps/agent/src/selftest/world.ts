import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CompileInput } from '@nd7/policy';
import { OpenSession } from './widening.js';

/** Where targets lie; a place is undefined where this system has none or nothing can be made there. */
export interface Places {
  /** Outside of the project, in the home folder. */
  outside: string;
  /** In nd7's home. */
  hidden: string;
  project: string | undefined;
  /** The machine's temporary folder, as it is outside. */
  tmp: string | undefined;
  varTmp: string | undefined;
  /** /dev/shm. */
  shm: string | undefined;
}

interface Victim {
  process: ChildProcess;
  pid: string;
  /** Where the canary lies in its memory, and the descriptor on which it holds a secret file. */
  address: string;
  fd: string;
}

/** What the file had before anybody tried to change it. */
const BEFORE = 'before\n';
/** As a process that stays behind writes: it would have written several times. */
const STAY_MS = 500;

/**
 * Everything that one run of the attempts aims at: files, sockets, listeners and processes made for it, with a canary that nobody else knows.
 * There are two, one for the attempts inside and one for their twin, so that neither finds what the other has changed.
 */
export class World {
  readonly canary = randomBytes(16).toString('hex');
  /** Lines that came to a listener outside. */
  readonly heard = new Set<string>();
  readonly abstractName: string;
  readonly unixPath: string;
  readonly lateUnixPath: string;
  tcpPort = 0;
  udpPort = 0;
  /** Whether what was left behind went on when its session had ended. */
  stayed = false;
  /** A session that answers who may ask. */
  session: OpenSession | undefined;
  #watched: Victim | undefined;
  #killed: Victim | undefined;
  readonly #servers: Server[] = [];
  #datagrams: Datagrams | undefined;

  private constructor(
    readonly places: Places,
    /** The program of native/probes as the attempts see it; undefined where it could not be built. */
    readonly probes: string | undefined,
    /** Where the attempts put a program that they then execute. */
    readonly copyTo: string,
  ) {
    this.abstractName = `nd7-selftest-${randomBytes(8).toString('hex')}`;
    // A socket's address has 107 bytes: the shortest of the places.
    this.unixPath = join(places.outside, 's');
    this.lateUnixPath = join(places.outside, 'late');
  }

  /** `program` is the file of the probes outside, where `probes` is what they are called inside. */
  static async make(
    places: Places,
    probes: string | undefined,
    program: string | undefined,
    copyTo: string,
    policies: CompileInput,
  ): Promise<World> {
    const world = new World(places, probes, copyTo);
    world.#files();
    await world.#listen();
    world.session = await OpenSession.open(places.hidden, policies);
    world.#watched = await world.#victim(program);
    world.#killed = await world.#victim(program);
    return world;
  }

  /** The process that is looked into; undefined where there are no probes: it is theirs. */
  get watched(): Victim | undefined {
    return this.#watched?.address === '' ? undefined : this.#watched;
  }

  get killed(): string {
    return this.#killed?.pid ?? '';
  }

  get isKilled(): boolean {
    const { exitCode, signalCode } = this.#killed?.process ?? { exitCode: null, signalCode: null };
    return exitCode !== null || signalCode !== null;
  }

  /** A file of the world in one of its places. */
  at(place: keyof Places, name: string): string | undefined {
    const folder = this.places[place];
    return folder === undefined ? undefined : join(folder, name);
  }

  isThere(place: keyof Places, name: string): boolean {
    const path = this.at(place, name);
    return path !== undefined && existsSync(path);
  }

  /** Whether a file that was there is as it was: what it holds, its mode, when it was changed. */
  isChanged(name: string): boolean {
    const path = join(this.places.outside, name);
    if (!existsSync(path)) return true;
    const { mode, mtimeMs } = statSync(path);
    return readFileSync(path, 'utf8') !== BEFORE || (mode & 0o777) !== 0o600 || mtimeMs < 100_000;
  }

  /** Whether a file of the project is what an attempt writes. */
  isPayload(name: string): boolean {
    const path = this.at('project', name);
    return path !== undefined && readFileSync(path, 'utf8').startsWith('#!/bin/sh');
  }

  /** What outsiders make when the session runs already. */
  late(): void {
    const path = this.at('project', 'late/.env');
    if (path !== undefined) writeFileSync(path, this.canary);
    this.#serve(this.lateUnixPath);
  }

  /** Connects to a server that an attempt made, as a program of this machine does. */
  reach(port: number): void {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.end(this.canary));
    socket.on('error', () => undefined);
  }

  /** Looks at what shows only after a moment. */
  async settle(): Promise<void> {
    const path = this.at('project', 'stay/mark');
    if (path !== undefined) rmSync(path, { force: true });
    await delay(STAY_MS);
    this.stayed = path !== undefined && existsSync(path);
  }

  async end(): Promise<void> {
    for (const server of this.#servers) server.close();
    this.#datagrams?.close();
    await this.session?.close();
    for (const victim of [this.#watched, this.#killed]) {
      if (victim === undefined || victim.process.exitCode !== null || victim.process.signalCode !== null) continue;
      victim.process.kill('SIGKILL');
      await once(victim.process, 'close');
    }
  }

  #files(): void {
    const make = (place: keyof Places, name: string, content: string): void => {
      const path = this.at(place, name);
      if (path === undefined) return;
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content, { mode: 0o600 });
    };
    make('hidden', 'secret', this.canary);
    for (const name of ['write', 'truncate', 'unlink', 'rename', 'steal', 'link', 'chmod', 'utime', 'xattr'])
      make('outside', name, BEFORE);
    make('outside', 'folder/there', BEFORE);
    make('outside', 'granted/there', BEFORE);
    for (const place of ['tmp', 'varTmp', 'shm'] as const) make(place, 'secret', this.canary);
    make('project', '.env', this.canary);
    make('project', 'late/there', '');
    make('project', 'stay/there', '');
    make('project', '.claude/settings.json', '{}\n');
    for (const repository of ['repository', 'moved', 'linked']) {
      for (const folder of ['objects', 'refs', 'hooks']) make('project', `${repository}/.git/${folder}/there`, '');
      make('project', `${repository}/.git/HEAD`, 'ref: refs/heads/main\n');
      make('project', `${repository}/.git/config`, '[core]\n');
    }
  }

  #serve(path: string): Server {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        this.#hear(bytes);
        socket.end('heard\n');
      });
    });
    server.on('error', () => undefined);
    this.#servers.push(server.listen(path));
    return server;
  }

  async #listen(): Promise<void> {
    this.#serve(this.unixPath);
    this.#serve(`\0${this.abstractName}`);
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        this.#hear(bytes);
        socket.end('heard\n');
      });
    });
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    this.tcpPort = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const datagrams = createSocket('udp4', (bytes) => this.#hear(bytes));
    this.#datagrams = datagrams;
    datagrams.bind(0, '127.0.0.1');
    await once(datagrams, 'listening');
    this.udpPort = datagrams.address().port;
  }

  #hear(bytes: Buffer): void {
    for (const line of bytes.toString('latin1').split('\n')) this.heard.add(line.trim());
  }

  /** It ends with this process, whatever ends that: its standard input closes. */
  async #victim(program: string | undefined): Promise<Victim> {
    const [command, args] =
      program === undefined ? ['cat', []] : [program, ['victim', join(this.places.hidden, 'secret'), 'held']];
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { NP_CANARY: this.canary, PATH: process.env['PATH'] },
    });
    // It may be killed: that is what is tried.
    child.stdin.on('error', () => undefined);
    await once(child, 'spawn');
    if (program === undefined) return { process: child, pid: String(child.pid), address: '', fd: '' };
    const closed = once(child, 'close').then(([code, signal]: unknown[]) => {
      throw new Error(`${program} ended at once (${String(code ?? signal)})`);
    });
    // It may end as long as it likes when it has spoken.
    closed.catch(() => undefined);
    const [bytes] = (await Promise.race([once(child.stdout, 'data'), closed])) as [Buffer];
    const [pid = '', address = '', fd = ''] = bytes.toString().trim().split(' ');
    return { process: child, pid, address, fd };
  }
}
