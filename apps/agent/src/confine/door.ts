import { connect, type Socket } from 'node:net';
import { chmodSync, copyFileSync, linkSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { PlanTier, Shown } from '@nd7/confine';
import { introducedTo, processFacts, socketAddress, type Peer } from '@nd7/kernel';
import type { Ruleset } from '@nd7/policy';
import { askRecorder, socketOf } from '../recorder/client.js';
import { othersRun, takeDoor, type DoorFolder } from '../recorder/doors.js';
import { encodeRequest, environmentOf, type Answer, type Request } from '../recorder/frames.js';
import { HOLD_DOOR, HOOK_INSIDE, insideMeta, lineage, type Inside, type Joined } from '../recorder/inside.js';
import type { Client } from '../recorder/peer.js';
import { listen, type HookServer } from '../recorder/server.js';
import { installShim } from '../recorder/shim.js';
import { ensureRecorder } from '../recorder/start.js';
import type { Attachment } from './attach.js';
import type { RunRecord } from './record.js';

/** Where the door's folder is inside. */
export const DOOR = '/run/nd7';
/** A path in that folder, where the folder is elsewhere; any other text as it is. */
export const inDoor = (text: string, place: string): string =>
  text.startsWith(`${DOOR}/`) ? place + text.slice(DOOR.length) : text;
/** A recorder answers in milliseconds, and an agent gives up its hook after 30 s. */
const ANSWER_MS = 10_000;
/** What a shim inside waits for this process; a session that was stopped at the terminal is stopped with it. */
const SHIM_ANSWER_MS = 25_000;
const START_MS = 5_000;
/** Where none could be started, the next try comes so much later: until then hooks do not wait for it. */
const AGAIN_MS = 30_000;
/** So many refusals are told one by one. */
const MAX_TOLD = 20;

/** Who answers what comes through the door besides being recorded. */
export interface DoorGuest {
  /** What is no hook; undefined where it is nothing that is known. */
  asked(request: Request, peer: Peer, gone: Promise<void>): Promise<Answer | undefined>;
  /** A hook was answered so, which has come from this process, with those above it up to the launcher; its agent may be told more. */
  hooked(request: Request, answer: Answer, line: readonly Client[]): Promise<Answer>;
}

/** What of a hook's meta is believed from inside. */
const META = /^(agent|took|cwd|pid|ppid|env\..+)$/;

/** The shim under this name asks instead of recording. */
const ASK = 'nd7';
/** And under this one comes first in a box. */
export const BOX = 'nd7-box';

/** Lays the program that asks beside the door's socket: the shim itself under another name, where the file system lets it. */
function layAsk(shim: string, path: string): void {
  try {
    linkSync(shim, path);
  } catch {
    copyFileSync(shim, path);
    chmodSync(path, 0o755);
  }
}

/**
 * The door of one confined session: a socket, of this process, through which the hooks inside speak and nothing else. Who speaks is the
 * kernel's word; what is said goes to the recorder, which makes `intent` entries of it, and where none can be had this process records it
 * itself. The folder goes with the session: the next one, or a recorder, takes away what a killed front has left.
 */
export class Door {
  readonly #joined = new Set<string>();
  #server: HookServer | undefined;
  #first: Client | undefined;
  #hold: Socket | undefined;
  #starting: Promise<boolean> | undefined;
  #notBefore = 0;
  #refused = 0;
  #guest: DoorGuest | undefined;
  /** A box of somebody else's has no supervisor, and its first process's children are programs. */
  #isSupervised = true;

  /** Told of each hook that is heard, before it is answered. */
  hears: (payload: Uint8Array) => void = () => undefined;

  private constructor(
    private readonly home: string,
    private readonly folder: DoorFolder,
    private readonly record: RunRecord,
    private readonly recording: Ruleset['recording'],
    private readonly isAttached: boolean,
    /** What of nd7's home is shown inside: the folder, by its real path, and the shim. */
    private readonly source: string,
    private readonly shim: string | undefined,
  ) {}

  /** Makes the folder, the socket in it, and the rules of a shim that nobody answers. What an attached agent needs is laid beside. Throws what went wrong. */
  static async open(
    home: string,
    record: RunRecord,
    recording: Ruleset['recording'],
    attachment: Attachment | undefined,
  ): Promise<Door> {
    const folder = takeDoor(home, record.id);
    try {
      const rules = `# For the shims of one confined session.\nrecording=${recording}\nanswer-ms=${SHIM_ANSWER_MS}\n`;
      for (const [name, text] of Object.entries({ ...attachment?.files, 'shim.conf': rules }))
        writeFileSync(join(folder.path, name), text, { mode: 0o600, flag: 'wx' });
      const installed = await installShim(home, 'user');
      const source = realpathSync(folder.path);
      const shim = 'path' in installed ? realpathSync(installed.path) : undefined;
      if (shim !== undefined) layAsk(shim, join(folder.path, ASK));
      const door = new Door(home, folder, record, recording, attachment?.agent === 'claude-code', source, shim);
      const caller = (peer: Peer, socket: Socket): Peer => door.#callerOf(peer, socket);
      door.#server = await listen({ folder: folder.path, name: 'hook', caller }, (request, peer, gone) =>
        door.#answer(request, peer, gone),
      );
      return door;
    } catch (error) {
      folder.release();
      throw error;
    }
  }

  /** Lays the program that comes first in a box of somebody else’s, which leads its loopback to sockets in this folder; undefined where there is no shim. */
  layBox(): string | undefined {
    if (this.shim === undefined) return undefined;
    layAsk(this.shim, join(this.source, BOX));
    this.#isSupervised = false;
    return `${DOOR}/${BOX}`;
  }

  /** Folder of the session’s control socket, which is never shown inside. */
  get control(): string {
    return this.folder.control;
  }

  /** From now on this one is asked besides. */
  receive(guest: DoorGuest): void {
    this.#guest = guest;
  }

  /** The folder, outside. */
  get path(): string {
    return realpathSync(this.folder.path);
  }

  /** Where its folder is inside: without a mount view nothing has another place. */
  placeIn(tier: PlanTier): string {
    return tier === 'T1' ? DOOR : this.source;
  }

  /** Lays an agent's settings for a tier: variables that name something in the folder, the stub of its shell, name it where it is there, or are left out. */
  lay(files: Readonly<Record<string, string>>, tier: PlanTier, isBrokered: boolean): void {
    const place = this.placeIn(tier);
    for (const [name, text] of Object.entries(files)) {
      const { env = {}, ...settings } = JSON.parse(text) as { env?: Record<string, string> };
      const kept = Object.entries(env).filter(([, value]) => isBrokered || !value.startsWith(`${DOOR}/`));
      const placed = kept.map(([key, value]) => [key, inDoor(value, place)]);
      const own = placed.length === 0 ? {} : { env: Object.fromEntries(placed) as Record<string, string> };
      writeFileSync(join(this.source, name), JSON.stringify({ ...settings, ...own }), { mode: 0o600 });
    }
  }

  /** Where it is connected to without namespaces: by the shim of this session, and by a registration that looks for the recorder. */
  get bare(): { socket: string; paths: readonly string[] } {
    const socket = join(this.source, 'hook');
    return { socket, paths: [socket, join(dirname(this.source), 'hook')] };
  }

  /** Variables that name the door inside; `port`: where it is one of the loopback (T3). */
  variablesIn(tier: PlanTier, port?: number): Record<string, string> {
    if (port !== undefined) return { ND7_SOCKET: `tcp:${port}` };
    return { ND7_SOCKET: join(this.placeIn(tier), 'hook') };
  }

  /** What of nd7's home is shown inside. */
  showsIn(tier: PlanTier): readonly Shown[] {
    const { source, shim } = this;
    return [
      { path: this.placeIn(tier), source },
      // Where a registration in the user's own settings looks for them.
      ...(tier === 'T1' ? [{ path: dirname(source), source }] : []),
      ...(shim === undefined ? [] : [{ path: shim, source: shim }]),
    ];
  }

  /** Without namespaces the session's supervisor opens the door, and says for whom. */
  opened(socket: Socket, pid: number): void {
    if (this.#server === undefined) socket.destroy();
    else this.#server.take(socket, { pid, uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 });
  }

  /** From now on those are heard that stand below the session's first process; nobody was before. */
  admit(pid: number | undefined): void {
    const facts = pid === undefined ? undefined : processFacts(pid);
    this.#first = facts && { pid: facts.pid, start: facts.start };
  }

  /** Has a recorder ready before the first hook speaks. */
  prepare(): void {
    void this.#start();
  }

  /** Whether another session of this home runs, which may stand on folders that this one has made. */
  get hasOthers(): boolean {
    return othersRun(this.home, this.folder.path);
  }

  async close(): Promise<void> {
    await this.#server?.close();
    if (this.#refused > MAX_TOLD)
      await this.record.note('alarm', { reason: 'door refused', count: this.#refused }, 'refusals at the door');
  }

  /** Gives the folder back. Whoever holds it until the end of the record is written has that end written by others where it is killed before. */
  release(): void {
    this.folder.release();
    this.#hold?.destroy();
  }

  /** The session's supervisor connects for the programs in it, and says for which: it is the launcher's child, as no program of the session is. */
  #callerOf(peer: Peer, socket: Socket): Peer {
    const isSupervisor =
      this.#isSupervised && this.#first !== undefined && processFacts(peer.pid)?.parent === this.#first.pid;
    const pid = isSupervisor ? introducedTo(socket) : undefined;
    return pid === undefined ? peer : { ...peer, pid };
  }

  async #answer(request: Request, peer: Peer, gone: Promise<void>): Promise<Answer> {
    const [first, meta] = [this.#first, new Map([...request.meta].filter(([key]) => META.test(key)))];
    const line = first && lineage(peer.pid, first);
    if (first === undefined || line === undefined) return this.#refuse(peer, 'who spoke is not inside');
    if (request.op !== 'hook')
      return (
        (await this.#guest?.asked(request, peer, gone)) ??
        this.#refuse(peer, 'something else than a hook was asked for')
      );
    this.hears(request.payload);
    const { id: run, place } = this.record;
    const inside: Inside = {
      run,
      ...place,
      pid: peer.pid,
      first,
      recording: this.recording,
      isAttached: this.isAttached,
    };
    const answer =
      (await this.#ask(meta, inside, request.payload)) ?? (await this.#alone({ ...request, meta }, inside));
    return this.#guest?.hooked(request, answer, line) ?? answer;
  }

  /** What the recorder says; undefined where none can be had. */
  async #ask(meta: Request['meta'], inside: Inside, payload: Buffer): Promise<Answer | undefined> {
    const options = { meta: { ...Object.fromEntries(meta), ...insideMeta(inside) }, payload, timeoutMs: ANSWER_MS };
    const ask = (): Promise<Answer | undefined> => askRecorder(this.home, HOOK_INSIDE, options);
    const given = (await ask()) ?? ((await this.#start()) ? await ask() : undefined);
    if (given === undefined || given.exit !== 0) return undefined;
    this.hold();
    const { answer, joined } = JSON.parse(given.stdout) as { answer: Answer; joined?: Joined };
    if (joined !== undefined) await this.#join(joined);
    return answer;
  }

  async #alone(request: Request, inside: Inside): Promise<Answer> {
    const { recordAlone } = await import('../recorder/alone.js');
    return recordAlone({
      home: this.home,
      agent: request.meta.get('agent') ?? '',
      env: environmentOf(request),
      payload: request.payload,
      took: request.meta.get('took') ?? 'complete',
      startRecorder: false,
      from: {
        inside,
        hasJoined: (session) => this.#joined.has(session),
        joined: (one) => this.#join(one),
      },
    });
  }

  /** The chain of this session names each chain that speaks from inside, as that one names it. */
  async #join(joined: Joined): Promise<void> {
    this.#joined.add(joined.session);
    await this.record.note('session.joined', { ...joined }, 'that an agent’s session has begun');
  }

  async #refuse({ pid, uid }: Peer, detail: string): Promise<Answer> {
    if (++this.#refused <= MAX_TOLD)
      await this.record.note('alarm', { reason: 'door refused', detail, by: { pid, uid } }, 'a refusal at the door');
    return { exit: 1, stdout: '', stderr: `nd7: ${detail}: nothing is recorded\n` };
  }

  /** One start at a time; a recorder that is there is told of this process, so that it notices its end. */
  #start(): Promise<boolean> {
    if (performance.now() < this.#notBefore) return Promise.resolve(false);
    this.#starting ??= ensureRecorder(this.home, START_MS)
      .then((isThere) => {
        if (isThere) this.hold();
        else this.#notBefore = performance.now() + AGAIN_MS;
        return isThere;
      })
      .finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  /** Has a recorder that is there notice the end of this process; none is started for it. */
  hold(): void {
    if (this.#hold !== undefined) return;
    const { folder, name } = socketOf(this.home);
    const address = socketAddress(folder, name);
    const hold = connect(address.path, () => hold.write(encodeRequest(HOLD_DOOR, { 'inside.run': this.record.id })));
    this.#hold = hold.unref();
    hold.on('error', () => undefined).on('data', () => undefined);
    hold.once('close', () => {
      address.close();
      this.#hold = undefined;
    });
  }
}
