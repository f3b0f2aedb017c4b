// Processor time, from /proc: what a loaded machine does not change as it changes times on the clock. Linux only; elsewhere nothing is told.
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds of one tick of /proc's counts: 100 a second on every Linux that Node runs on. */
const TICK = 10;

/** A process's parent, its own processor time and that of its ended children, in milliseconds; undefined where it is gone. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' '); // the name before may hold anything; fields[0] is the 3rd of proc(5)
    const [own, ended] = [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])];
    return { parent: Number(fields[1]), own: own * TICK, ended: ended * TICK };
  } catch {
    return undefined;
  }
}

/** User and system time of one process. */
export const processMs = (pid) => statOf(pid)?.own;

/** That of a server and all its children, be they running or ended: what PostgreSQL spent, backends, writers and all. */
export function familyMs(pid) {
  const head = statOf(pid);
  if (head === undefined) return undefined;
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .filter((stat) => stat?.parent === pid);
  return children.reduce((sum, { own }) => sum + own, head.own + head.ended);
}

/** The parent of a process: of a backend, the server. */
export const parentOf = (pid) => statOf(pid)?.parent;
