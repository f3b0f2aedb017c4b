// What entries of class `effect` are about, in a few words.
import { constants } from 'node:os';

/** A command that the broker ran (docs/protocol/exec.md), undefined for what is none. */
export function commandText(kind: string | undefined, data: Record<string, unknown>): string | undefined {
  const { command, how, code, signal, ms, tied, direct, lost, left_out: leftOut } = data;
  if (typeof command !== 'string') return undefined;
  if (kind === 'exec') {
    const by = how === 'itself' ? 'begins, run by who asked' : 'begins';
    const without = Array.isArray(leftOut) ? `, without ${leftOut.map(String).join(', ')}` : '';
    return `${command} ${by}${tied === 'only' ? ', not in the words of its call' : ''}${without}`;
  }
  if (kind !== 'exec.end') return undefined;
  if (direct === true) return `${command} was handed back: it runs as the agent’s child`;
  const end = typeof signal === 'number' ? `killed by ${signalName(signal)}` : `exit ${String(code)}`;
  return `${command} ended: ${end}${lost === true ? ' with its keeper' : ''}, ${String(ms)} ms`;
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;
}
