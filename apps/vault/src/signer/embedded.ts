import { existsSync } from 'node:fs';
import { fromHex, utf8 } from '@nd7/entry';
import { createKeyFile, destroyKeyFile, loadKeyFile, SigningError, type KeyPair } from '@nd7/signing';
import {
  emptyRoot,
  formatCheckpoint,
  formatNote,
  formatVkey,
  isOrigin,
  keyId,
  signatureLine,
  verifyConsistency,
  type Checkpoint,
} from '@nd7/tlog';
import { join } from 'node:path';
import { readdir } from 'node:fs/promises';
import { FolderLock } from './folder-lock.js';
import {
  describeHead,
  refuse,
  SignerError,
  type CheckpointSigner,
  type Refused,
  type SignAnswer,
  type SignerState,
  type SignRequest,
  type TreeHead,
} from './signer.js';
import { createState, originFolder, readState, writeState } from './state-file.js';

/** At most this many hashes lead from one tree to a later one (docs/receipt.md: 63 siblings). */
const MAX_PROOF = 63;

interface Held {
  last: Checkpoint;
  /** Oldest first; all sign. */
  keys: { pair: KeyPair; vkey: string; id: number; number: number }[];
}

/**
 * Signs with key files, `<folder>/<origin with _ for />/key-<n>.pem`, beside the state. Holds the folder's exclusive lock from `open` to
 * `close`. Every request of one log waits for the one before it; a state that could not be made durable stops the log here until the
 * process is started again, because after a failed fsync nobody knows what the disk holds.
 */
export class EmbeddedSigner implements CheckpointSigner {
  /** Per origin: the request in progress. */
  private readonly busy = new Map<string, Promise<unknown>>();
  /** Loaded on first use; written only by the request in progress. */
  private readonly held = new Map<string, Held>();
  private readonly failed = new Map<string, string>();

  private constructor(
    readonly folder: string,
    private readonly lock: FolderLock,
  ) {}

  /** Throws SignerError `locked` when another signer has the folder. */
  static open(folder: string): EmbeddedSigner {
    return new EmbeddedSigner(folder, FolderLock.take(folder));
  }

  /** What the files say, without the lock: for commands beside a running signer. Nothing may be signed on the strength of it. */
  static async look(folder: string, origin: string): Promise<SignerState> {
    const read = await readHeld(folder, origin);
    return 'keys' in read ? stateOf(read) : read;
  }

  /**
   * A note of the log's own that is no checkpoint, signed by all its keys: for a person's command. It changes no state and so needs no lock.
   * Refuses a text that does not say in its second line what it is: a tree's head is signed by `sign` alone.
   */
  static async signNote(folder: string, origin: string, text: string): Promise<string | Refused> {
    if (!text.startsWith(`${origin}\nnd7/`)) return refuse('bad-request', 'not a note of this log that names its kind');
    const read = await readHeld(folder, origin);
    if (!('keys' in read)) return read;
    return formatNote(
      text,
      read.keys.map(({ pair, id }) => signatureLine(origin, id, pair.sign(utf8(text)))),
    );
  }

  provision(origin: string): Promise<SignerState> {
    return this.alone(origin, async () => {
      await provisionFiles(this.folder, origin);
      return this.load(origin);
    });
  }

  state(origin: string): Promise<SignerState> {
    return this.alone(origin, () => this.load(origin));
  }

  sign(request: SignRequest): Promise<SignAnswer> {
    return this.alone(request.origin, async () => {
      const loaded = await this.load(request.origin);
      const held = this.held.get(request.origin);
      if (!loaded.ok) return loaded;
      if (held === undefined) return refuse('no-state', `no state of ${request.origin}`);
      const refused = judge(held.last, request);
      if (refused !== undefined) return refused;
      const next: Checkpoint = { origin: request.origin, size: request.size, root: request.root };
      if (next.size > held.last.size) {
        try {
          if (!this.lock.holds(this.folder)) throw new Error('its folder is no longer the one that was locked');
          await writeState(originFolder(this.folder, request.origin), next);
        } catch (error) {
          this.failed.set(request.origin, (error as Error).message);
          return this.refuseFailed(request.origin);
        }
        held.last = next;
      }
      // Only now: what is signed is already what the disk says was signed last.
      const message = utf8(formatCheckpoint(next));
      return {
        ok: true,
        lines: held.keys.map(({ pair, id }) => signatureLine(request.origin, id, pair.sign(message))),
      };
    });
  }

  /**
   * A person's decision: from now on `head` is what was signed last, whatever was before. `expected` is what the person saw (undefined: lost
   * or damaged); another state than that is refused, so that nobody decides about a state they have not seen.
   */
  adopt(origin: string, expected: TreeHead | undefined, head: TreeHead): Promise<void> {
    return this.alone(origin, async () => {
      const now = await this.lastOf(origin);
      const same = now === undefined ? expected === undefined : expected !== undefined && sameHead(now, expected);
      if (!same)
        throw new SignerError(
          'not-adopted',
          `the signer's state of ${origin} is ${now === undefined ? 'lost' : describeHead(now)}, not what was decided about`,
        );
      const folder = originFolder(this.folder, origin);
      if ((await keyNumbers(folder)).length === 0)
        throw new SignerError('keys', `there is no key of ${origin} in ${folder}: put the key file back first`);
      await writeState(folder, { origin, ...head });
      this.held.delete(origin);
      this.failed.delete(origin);
    });
  }

  /** What was signed last by the file, undefined when lost or damaged: what `adopt` is about. */
  async lastOf(origin: string): Promise<TreeHead | undefined> {
    try {
      return await readState(originFolder(this.folder, origin), origin);
    } catch (error) {
      if (error instanceof SignerError) return undefined;
      throw error;
    }
  }

  /**
   * Makes the next key and has both sign from now on. `signText` is signed by the old and the new key, in that order. Called again before the
   * old key is retired it makes no third key and gives the same answer.
   */
  rotate(
    origin: string,
    signText: (oldVkey: string, newVkey: string) => Uint8Array,
  ): Promise<{ old: string; new: string; signatures: [Uint8Array, Uint8Array] }> {
    return this.alone(origin, async () => {
      let held = await this.required(origin);
      if (held.keys.length === 1) {
        const number = (held.keys[0]?.number ?? 0) + 1;
        createKeyFile(join(originFolder(this.folder, origin), keyName(number)));
        this.held.delete(origin);
        held = await this.required(origin);
      }
      const [before, after] = held.keys.slice(-2);
      if (before === undefined || after === undefined)
        throw new SignerError('keys', `the keys of ${origin} are not two`);
      const text = signText(before.vkey, after.vkey);
      return { old: before.vkey, new: after.vkey, signatures: [before.pair.sign(text), after.pair.sign(text)] };
    });
  }

  /** Destroys all keys but the newest, once every client has learnt of the newest. Returns the verifier keys that sign no more. */
  retire(origin: string): Promise<string[]> {
    return this.alone(origin, async () => {
      const held = await this.required(origin);
      const old = held.keys.slice(0, -1);
      for (const { number } of old) destroyKeyFile(join(originFolder(this.folder, origin), keyName(number)));
      this.held.delete(origin);
      return old.map(({ vkey }) => vkey);
    });
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.busy.values()]);
    this.held.clear();
    this.lock.release();
  }

  private async required(origin: string): Promise<Held> {
    const state = await this.load(origin);
    const held = this.held.get(origin);
    if (!state.ok || held === undefined)
      throw new SignerError('keys', state.ok ? `no key of ${origin}` : state.message);
    return held;
  }

  private async load(origin: string): Promise<SignerState> {
    if (!isOrigin(origin)) return refuse('bad-request', 'not an origin');
    if (this.failed.has(origin)) return this.refuseFailed(origin);
    let held = this.held.get(origin);
    if (held === undefined) {
      const read = await readHeld(this.folder, origin);
      if (!('keys' in read)) return read;
      held = read;
      this.held.set(origin, held);
    }
    return stateOf(held);
  }

  private refuseFailed(origin: string): Refused {
    return refuse(
      'failed',
      `the signer could not store its state of ${origin} (${this.failed.get(origin) ?? ''}) and signs nothing more: mend the disk and start it again`,
    );
  }

  /** One request of a log at a time. */
  private async alone<T>(origin: string, work: () => Promise<T>): Promise<T> {
    const before = this.busy.get(origin);
    const mine = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    this.busy.set(origin, mine);
    try {
      return await mine;
    } finally {
      if (this.busy.get(origin) === mine) this.busy.delete(origin);
    }
  }
}

/** Key and empty state of a new log, where there is neither. The state comes first: a key without a state has lost it. */
export async function provisionFiles(root: string, origin: string): Promise<void> {
  if (!isOrigin(origin)) return;
  const folder = originFolder(root, origin);
  if ((await keyNumbers(folder)).length > 0) return;
  await createState(folder, { origin, size: 0, root: emptyRoot });
  const state = await readState(folder, origin);
  if (state?.size !== 0) return; // it has signed before: its key is missing, and a new one would be another log
  try {
    createKeyFile(join(folder, keyName(1)));
  } catch (error) {
    if (!(error instanceof SigningError && error.code === 'exists')) throw error;
  }
}

/** The rule: never less than before, never another root for the same size, never a tree that does not begin with the last one. */
function judge(last: Checkpoint, { origin, size, root, proof }: SignRequest): Refused | undefined {
  const isProof =
    Array.isArray(proof) &&
    proof.length <= MAX_PROOF &&
    proof.every((hash) => hash instanceof Uint8Array && hash.length === 32);
  if (!Number.isSafeInteger(size) || size <= 0 || !(root instanceof Uint8Array) || root.length !== 32 || !isProof)
    return refuse('bad-request', 'not a tree head with a consistency proof');
  if (size < last.size)
    return refuse('behind', `${origin}: asked to sign size ${String(size)}, but ${describeHead(last)} is signed`, last);
  if (size === last.size && !sameHead(last, { size, root }))
    return refuse(
      'fork',
      `${origin}: asked to sign ${describeHead({ size, root })}, but ${describeHead(last)} is signed`,
      last,
    );
  if (!verifyConsistency(last.size, last.root, size, root, size === last.size ? [] : proof))
    return refuse(
      'not-consistent',
      `${origin}: no proof that ${describeHead({ size, root })} extends the signed ${describeHead(last)}`,
      last,
    );
  return undefined;
}

function stateOf({ last, keys }: Held): SignerState {
  return { ok: true, last: { size: last.size, root: last.root }, vkeys: keys.map(({ vkey }) => vkey) };
}

async function readHeld(root: string, origin: string): Promise<Held | Refused> {
  const folder = originFolder(root, origin);
  const numbers = await keyNumbers(folder);
  if (numbers.length === 0) return refuse('no-key', `there is no key of ${origin} in ${folder}`);
  try {
    const last = await readState(folder, origin);
    if (last === undefined)
      return refuse(
        'no-state',
        `the signer has a key of ${origin} but has lost what it signed with it: decide with \`nd7-vault signer adopt\``,
      );
    const keys = numbers.map((number) => {
      const pair = loadKeyFile(join(folder, keyName(number)));
      const key = fromHex(pair.publicKey) ?? new Uint8Array();
      return { pair, number, vkey: formatVkey(origin, 1, key), id: keyId(origin, 1, key) };
    });
    return { last, keys };
  } catch (error) {
    if (error instanceof SignerError) return refuse('no-state', error.message);
    if (error instanceof SigningError) return refuse('no-key', error.message);
    throw error;
  }
}

/** Numbers of the key files, oldest first. */
async function keyNumbers(folder: string): Promise<number[]> {
  if (!existsSync(folder)) return [];
  const names = await readdir(folder);
  return names
    .flatMap((name) => /^key-([1-9][0-9]{0,5})\.pem$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

function keyName(number: number): string {
  return `key-${String(number)}.pem`;
}

function sameHead(a: TreeHead, b: TreeHead): boolean {
  return a.size === b.size && Buffer.compare(a.root, b.root) === 0;
}
