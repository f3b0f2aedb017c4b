import { accessSync, chmodSync, constants, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isSessionId } from '@nd7/entry';
import { makeFolders } from '@nd7/kernel';
import { makeFolder } from './disk.js';
import { errnoOf, JournalError } from './failure.js';

/** The folders and files of one `$ND7_HOME` (docs/format.md, "Files"). Paths only: nothing is opened. */
export class Home {
  readonly sessions: string;
  readonly blobs: string;
  readonly run: string;
  readonly keys: string;
  readonly outbox: string;
  readonly machineKeyFile: string;
  readonly configFile: string;
  readonly vaultFile: string;

  constructor(readonly root: string) {
    this.sessions = join(root, 'sessions');
    this.blobs = join(root, 'blobs');
    this.run = join(root, 'run');
    this.keys = join(root, 'keys');
    this.outbox = join(root, 'outbox');
    this.machineKeyFile = join(this.keys, 'machine.key');
    this.configFile = join(root, 'config.json');
    this.vaultFile = join(root, 'vault.json');
  }

  /** Throws JournalError `session-id` for anything that may not become part of a path. */
  sessionDir(session: string): string {
    if (!isSessionId(session)) {
      throw new JournalError(
        'session-id',
        `${JSON.stringify(session.slice(0, 160))} is no session id: letters, digits, ".", "_" and "-", beginning with a letter or digit, at most 128`,
      );
    }
    return join(this.sessions, session);
  }

  logFile(session: string): string {
    return join(this.sessionDir(session), 'log.jsonl');
  }
  headFile(session: string): string {
    return join(this.sessionDir(session), 'head.json');
  }
  receiptsDir(session: string): string {
    return join(this.sessionDir(session), 'receipts');
  }
  /** Where the session's signing key lies. */
  sessionKeys(session: string): string {
    this.sessionDir(session);
    return join(this.keys, 'sessions', session);
  }
  outboxDir(session: string): string {
    this.sessionDir(session);
    return join(this.outbox, session);
  }
}

/**
 * Opens the home folder for writing: makes it and its folders (0700) where they are missing, and refuses one that would not serve:
 * not a folder, another user's, open to others, read-only. An empty folder that is open to others is closed instead of refused.
 */
export function openHome(path: string): Home {
  const home = new Home(resolve(path));
  try {
    if (makeRoot(home.root)) chmodSync(home.root, 0o700);
    checkOwner(home.root);
    for (const folder of [home.sessions, home.blobs, home.run, home.keys, home.outbox, join(home.keys, 'sessions')])
      makeFolder(folder);
    accessSync(home.root, constants.W_OK);
    accessSync(home.sessions, constants.W_OK);
  } catch (error) {
    if (error instanceof JournalError) throw error;
    throw unusable(home.root, error);
  }
  return home;
}

function makeRoot(root: string): boolean {
  makeFolders(dirname(root));
  return makeFolder(root);
}

function checkOwner(root: string): void {
  const stat = statSync(root);
  if (!stat.isDirectory())
    throw new JournalError('not-a-folder', `${root} is not a folder: set ND7_HOME to a folder of your own`);
  const uid = process.geteuid?.();
  if (uid !== undefined && stat.uid !== uid) {
    throw new JournalError(
      'wrong-owner',
      `${root} belongs to user ${stat.uid}, and this is user ${uid}: run nd7 as that user, or set ND7_HOME to a folder of your own`,
    );
  }
  if ((stat.mode & 0o077) !== 0) {
    if (readdirSync(root).length > 0)
      throw new JournalError('permissions', `${root} is open to other users: run chmod 700 ${root}`);
    chmodSync(root, 0o700);
  }
}

function unusable(root: string, error: unknown): JournalError {
  const errno = errnoOf(error);
  const at = (error as { path?: string }).path ?? root;
  if (errno === 'EROFS')
    return new JournalError(
      'read-only',
      `${at} is on a read-only file system: set ND7_HOME to a folder that can be written`,
      { cause: error },
    );
  if (errno === 'EACCES' || errno === 'EPERM')
    return new JournalError(
      'read-only',
      `${at} cannot be written: mend its permissions, or set ND7_HOME to a folder of your own`,
      { cause: error },
    );
  if (errno === 'ENOTDIR' || errno === 'EEXIST')
    return new JournalError('not-a-folder', `${at} is in the way of a folder: set ND7_HOME to another place`, {
      cause: error,
    });
  if (errno === 'ENOSPC' || errno === 'EDQUOT')
    return new JournalError('no-space', `no space left for ${at}`, { cause: error });
  return new JournalError(
    'unreadable',
    `${at} cannot be used (${error instanceof Error ? error.message : String(error)}): set ND7_HOME to a folder of your own`,
    { cause: error },
  );
}
