import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { parseStat } from './process.js';

/** One end of a connection of IPv4, as the process at the other end knows it. */
export interface TcpEnds {
  /** The end that is asked about: its own address and port. */
  from: { address: string; port: number };
  /** The end that asks. */
  to: { address: string; port: number };
}

/**
 * The process at the other end of a TCP connection of this machine, of those of this user that are `first` or stand below it; undefined where it is none
 * of them. It is the kernel's word: the socket by its two addresses (/proc/net/tcp), and who has it open. Linux only. Of processes that let nobody look into
 * them (PR_SET_DUMPABLE, programs that cannot be read) nothing is found but by root.
 */
export function tcpPeer(
  ends: TcpEnds,
  first: number,
  table = new TcpTable(),
): { pid: number; uid: number } | undefined {
  const socket = socketOf(ends, table);
  // Before anything is looked through: somebody else of this machine can connect as often as he likes.
  if (socket === undefined || socket.uid !== process.geteuid?.()) return undefined;
  const name = `socket:[${socket.inode}]`;
  const holders = below(first).filter((pid) => holds(pid, name));
  // Who has made it hands it to children; the youngest has it in use.
  const pid = holders.at(-1);
  return pid === undefined ? undefined : { pid, uid: socket.uid };
}

const ESTABLISHED = '01';
/** The client has said all that it had to say, and waits for the answer (FIN_WAIT1, FIN_WAIT2). */
const WAITING = ['04', '05'];

/** The kernel's list of connections as it was when something was first looked for in it. To write it takes the kernel milliseconds, however short it is. */
export class TcpTable {
  readonly #texts = new Map<string, string>();

  rows(file: '/proc/net/tcp' | '/proc/net/tcp6'): string {
    const rows = this.#texts.get(file) ?? text(file);
    this.#texts.set(file, rows);
    return rows;
  }
}

function socketOf({ from, to }: TcpEnds, table: TcpTable): { inode: string; uid: number } | undefined {
  const four = `${hex(from.address)}:${port(from.port)} ${hex(to.address)}:${port(to.port)}`;
  const mapped = (address: string): string => `0000000000000000FFFF0000${hex(address)}`;
  const six = `${mapped(from.address)}:${port(from.port)} ${mapped(to.address)}:${port(to.port)}`;
  for (const [file, wanted] of [
    ['/proc/net/tcp', four],
    ['/proc/net/tcp6', six],
  ] as const) {
    const rows = table.rows(file);
    const at = rows.indexOf(`: ${wanted} `);
    if (at < 0) continue;
    const [state = '', , , , uid, , inode = '0'] = rows
      .slice(at + wanted.length + 3)
      .trimStart()
      .split(/\s+/, 7);
    if ((state === ESTABLISHED || WAITING.includes(state)) && inode !== '0') return { inode, uid: Number(uid) };
  }
  return undefined;
}

const port = (number: number): string => number.toString(16).toUpperCase().padStart(4, '0');
/** As /proc/net has it: a number of the machine's own byte order, which is little-endian on both architectures. */
const hex = (address: string): string =>
  address
    .split('.')
    .reverse()
    .map((part) => Number(part).toString(16).toUpperCase().padStart(2, '0'))
    .join('');

function text(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

/** A process and all below it, parents before their children. */
function below(first: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const facts = parseStat(text(`/proc/${name}/stat`));
    if (facts !== undefined) children.set(facts.parent, [...(children.get(facts.parent) ?? []), facts.pid]);
  }
  const all = [first];
  // It grows while it is walked.
  for (const pid of all) all.push(...(children.get(pid) ?? []));
  return all;
}

function holds(pid: number, name: string): boolean {
  let descriptors: string[];
  try {
    descriptors = readdirSync(`/proc/${pid}/fd`);
  } catch {
    return false;
  }
  return descriptors.some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === name;
    } catch {
      return false;
    }
  });
}
