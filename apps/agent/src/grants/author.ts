// Who spoke on a control socket: what the kernel says of the process, and whether it stands inside any session.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { processFacts, type Peer } from '@nd7/kernel';
import { isBelow, type Client } from '../recorder/peer.js';

/** Who made a grant, a denial or an end of one; goes into the entry. */
export interface Author {
  user: string;
  uid: number;
  pid: number;
  /** Start of the process; with the pid it means one process. */
  start: string;
  /** The terminal that it has, `pts/3`; null for none. */
  tty: string | null;
  program: string;
  /** The process above it: a shell a person types at, or something that runs by itself. */
  parent: { pid: number; program: string } | null;
}

/** File in the folder of a control socket that says which process is the session's first. */
export const FIRST = 'first';
const FOLDER = /^c-[0-9a-f]{16}$/;

/**
 * The author of what came on a control socket. Answers why in place of one where the process cannot be told or stands inside a confined
 * session: below the first process of one of this home, or in other namespaces than this process.
 */
export function authorOf(peer: Peer, runFolder: string): Author | { refused: string } {
  const facts = processFacts(peer.pid);
  if (facts === undefined) return { refused: 'the process that asks cannot be seen from here' };
  if (firstsIn(runFolder).some((first) => isBelow(peer.pid, first, true)))
    return { refused: 'whoever is inside a session cannot widen one' };
  for (const namespace of ['pid', 'mnt', 'net', 'user'])
    if (namespaceOf(peer.pid, namespace) !== namespaceOf('self', namespace))
      return { refused: `the process that asks is in another ${namespace} namespace, as those inside a session are` };
  return {
    user: userName(peer.uid),
    uid: peer.uid,
    pid: peer.pid,
    start: facts.start,
    tty: ttyOf(peer.pid),
    program: programOf(peer.pid),
    parent: facts.parent > 0 ? { pid: facts.parent, program: programOf(facts.parent) } : null,
  };
}

/** The first processes of all sessions of a home that live. */
function firstsIn(runFolder: string): Client[] {
  let names: string[];
  try {
    names = readdirSync(runFolder).filter((name) => FOLDER.test(name));
  } catch {
    return [];
  }
  return names.flatMap((name) => firstOf(join(runFolder, name)) ?? []);
}

/** The first process of the session whose control socket lies in a folder; undefined where it has not begun yet, or has just ended. */
export function firstOf(folder: string): Client | undefined {
  try {
    const [pid, start = ''] = readFileSync(join(folder, FIRST), 'utf8').trim().split(' ');
    return { pid: Number(pid), start };
  } catch {
    return undefined;
  }
}

/** Undefined where this process may not look, which is no namespace of ours. */
function namespaceOf(pid: number | 'self', name: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${name}`);
  } catch {
    return pid === 'self' ? 'own' : undefined;
  }
}

/** The controlling terminal by its number (proc(5), field 7 of stat). */
function ttyOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const number = Number(fields[4]);
    if (!(number > 0)) return null;
    const [major, minor] = [(number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00)];
    return major >= 136 && major <= 143
      ? `pts/${(major - 136) * 256 + minor}`
      : major === 4
        ? `tty${minor}`
        : `${major}:${minor}`;
  } catch {
    return null;
  }
}

function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}

function userName(uid: number): string {
  try {
    const { username, uid: own } = userInfo();
    return own === uid ? username : String(uid);
  } catch {
    return String(uid);
  }
}
