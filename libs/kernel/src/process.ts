import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One process as the kernel tells it. A pid comes back after its process is gone; pid and start together do not. */
export interface ProcessFacts {
  pid: number;
  /** The parent's pid; 0 where there is none in sight. */
  parent: number;
  /** Start time: on Linux clock ticks since boot (field 22 of proc(5) stat), elsewhere what `ps` prints. Compare only for equality. */
  start: string;
  /** Linux state letter (`R`, `S`, `Z`, …). */
  state: string;
  /** Page faults of the children it has waited for, theirs included (proc(5) `cminflt` and `cmajflt`): more than before means that a child has ended. Linux only. */
  childFaults?: number;
}

/** The facts about a process, undefined when there is none of that pid (or it is not visible). */
export function processFacts(pid: number): ProcessFacts | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (process.platform === 'linux') {
    try {
      return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    } catch {
      return undefined;
    }
  }
  try {
    const row = execFileSync('/bin/ps', ['-o', 'ppid=,state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    const m = /^(\d+)\s+(\S+)\s+(.+)$/.exec(row);
    return m ? { pid, parent: Number(m[1]), state: (m[2] ?? '?').charAt(0), start: m[3] ?? '' } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * True while the process lives: the pid exists, is no zombie and, when `start` is given, is still the same process.
 */
export function isAlive(pid: number, start?: string): boolean {
  const facts = processFacts(pid);
  if (facts === undefined || facts.state === 'Z' || facts.state === 'X') return false;
  return start === undefined || facts.start === start;
}

/** Reads a line of /proc/<pid>/stat (proc(5)). The name in brackets is the process's own choice and may hold `)` and spaces: the last `)` ends it. */
export function parseStat(text: string): ProcessFacts | undefined {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const pid = Number(text.slice(0, open).trim());
  const rest = text
    .slice(close + 1)
    .trim()
    .split(/\s+/); // rest[0] is field 3
  const [state, parent, start] = [rest[0], rest[1], rest[19]];
  const childFaults = Number(rest[8]) + Number(rest[10]);
  if (
    !Number.isSafeInteger(pid) ||
    pid <= 0 ||
    state === undefined ||
    parent === undefined ||
    start === undefined ||
    !/^\d+$/.test(start)
  )
    return undefined;
  return { pid, parent: Number(parent), start, state, ...(Number.isSafeInteger(childFaults) && { childFaults }) };
}
