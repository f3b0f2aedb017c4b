import { closeSync, existsSync, openSync, readdirSync, renameSync, statSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tryLock } from '@nd7/kernel';
import { createKeyFile, destroyKeyFile, loadKeyFile, SigningError, type KeyPair } from '@nd7/signing';
import { makeFolder, realDisk, syncFolder } from './disk.js';
import { JournalError } from './failure.js';
import type { Home } from './home.js';

const KEY_FILE = /^(0|[1-9][0-9]{0,15})\.key$/;

/** A signing key of a session and the number in its file's name. */
export interface SessionKey {
  index: number;
  pair: KeyPair;
}

/**
 * The machine's key, made on first use. Throws JournalError `machine-key-lost` where this machine is enrolled and the key is gone (a
 * new one would be another machine), SigningError where the file cannot be used.
 */
export function machineKey(home: Home): KeyPair {
  const facts = factsOf(home.machineKeyFile);
  if (facts !== undefined && loaded?.facts === facts) return loaded.pair;
  const pair = loadOrMake(home);
  loaded = facts === undefined ? undefined : { facts, pair };
  return pair;
}

/** The machine's key as it was read last: reading it anew is for a file that changed, in its rights too, which its ctime tells. */
let loaded: { facts: string; pair: KeyPair } | undefined;

function factsOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && [path, stat.dev, stat.ino, stat.mode, stat.uid, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ');
}

function loadOrMake(home: Home): KeyPair {
  try {
    return loadKeyFile(home.machineKeyFile);
  } catch (error) {
    if (!(error instanceof SigningError) || error.code !== 'missing') throw error;
  }
  if (existsSync(home.vaultFile)) {
    throw new JournalError(
      'machine-key-lost',
      `this machine is enrolled (${home.vaultFile}) but its key ${home.machineKeyFile} is gone: put it back from a copy, or remove ${home.vaultFile} and enrol again as a new machine`,
    );
  }
  const fd = openSync(home.keys, 'r');
  try {
    // Whoever holds it is making the same key, or a session: a matter of milliseconds.
    for (let waited = 0; !tryLock(fd); waited += 2) {
      if (waited > 10_000)
        throw new JournalError('locked', `another process holds ${home.keys}: look for a hanging nd7 process`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
    if (existsSync(home.machineKeyFile)) return loadKeyFile(home.machineKeyFile);
    // Under another name first: a crash must not leave half a machine key that stands in the way for ever.
    const fresh = `${home.machineKeyFile}.new`;
    if (existsSync(fresh)) unlinkSync(fresh);
    const pair = createKeyFile(fresh);
    renameSync(fresh, home.machineKeyFile);
    syncFolder(realDisk, home.keys);
    return pair;
  } finally {
    closeSync(fd);
  }
}

/** The signing keys of one session on disk. All calls but `list` want the session's lock held. */
export class SessionKeys {
  readonly #folder: string;

  constructor(home: Home, session: string) {
    this.#folder = home.sessionKeys(session);
  }

  /** Makes the folder; true when it was not there. */
  prepare(): boolean {
    return makeFolder(this.#folder);
  }

  #path(index: number): string {
    return join(this.#folder, `${index}.key`);
  }

  #indexes(): number[] {
    let names: string[];
    try {
      names = readdirSync(this.#folder);
    } catch {
      return [];
    }
    return names.flatMap((name) => (KEY_FILE.test(name) ? [parseInt(name, 10)] : []));
  }

  /** The key whose public half is `publicKey`; undefined when no file holds it. Files that cannot be read are passed over. */
  find(publicKey: string): SessionKey | undefined {
    for (const index of this.#indexes()) {
      try {
        const pair = loadKeyFile(this.#path(index));
        if (pair.publicKey === publicKey) return { index, pair };
      } catch (error) {
        if (!(error instanceof SigningError)) throw error;
      }
    }
    return undefined;
  }

  /** Makes key number `index`. A file that a crash left there was never named by a seal in the log: it goes. */
  create(index: number, options: { sync?: boolean } = {}): SessionKey {
    destroyKeyFile(this.#path(index));
    return { index, pair: createKeyFile(this.#path(index), options) };
  }

  /** The file of key number `index` and the folders that lead to it: what has to be synced for a key that was not when it was made. */
  pathsOf(index: number): string[] {
    return [this.#path(index), this.#folder, dirname(this.#folder)];
  }

  /** Changes with the file of key number `index`; undefined where there is none. */
  factsOf(index: number): string | undefined {
    return factsOf(this.#path(index));
  }

  destroy(index: number): void {
    destroyKeyFile(this.#path(index));
  }

  /** Destroys every key but number `keep` (undefined: all). Only once the seal that puts it in force is on the disk. */
  destroyOthers(keep: number | undefined): void {
    for (const index of this.#indexes()) if (index !== keep) destroyKeyFile(this.#path(index));
  }
}
