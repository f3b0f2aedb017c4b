import { readFileSync, readlinkSync } from 'node:fs';
import type { Peer } from '@nd7/kernel';

/** What of a process decides how the disk looks to it and what it may do: a host that differs in any of it would prepare another session. */
const NAMESPACES = ['mnt', 'user', 'pid', 'net', 'ipc', 'uts'] as const;
const STATUS = /^(Uid|Gid|Groups|NoNewPrivs|Seccomp|Seccomp_filters|CapInh|CapPrm|CapEff|CapBnd|CapAmb):.*$/gm;

/**
 * Why this process may not keep a session for the one that asks; undefined where it may. It asks the kernel, never the process: a confined one
 * differs in its namespaces or in the filter of its calls.
 */
export function whyNotFor({ pid, uid }: Peer): string | undefined {
  if (uid !== process.geteuid?.() || pid <= 0) return 'it is another user’s';
  try {
    const differs = NAMESPACES.find((name) => placeOf(pid, `ns/${name}`) !== placeOf('self', `ns/${name}`));
    if (differs !== undefined) return `it is in another ${differs} namespace`;
    if (placeOf(pid, 'root') !== placeOf('self', 'root')) return 'it has another root folder';
    if (statusOf(pid) !== statusOf('self')) return 'it has other rights';
    if (limitsOf(pid) !== limitsOf('self')) return 'it has other resource limits';
  } catch {
    return 'it cannot be seen';
  }
  return undefined;
}

function placeOf(pid: number | 'self', what: string): string {
  return readlinkSync(`/proc/${pid}/${what}`);
}

function statusOf(pid: number | 'self'): string {
  return (readFileSync(`/proc/${pid}/status`, 'latin1').match(STATUS) ?? []).join('\n');
}

function limitsOf(pid: number | 'self'): string {
  return readFileSync(`/proc/${pid}/limits`, 'latin1');
}
