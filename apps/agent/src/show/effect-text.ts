// What entries of class `effect` are about, in a few words.
import { constants } from 'node:os';

/** What an effect is about; undefined where that is not known. */
export function effectText(kind: string | undefined, data: Record<string, unknown>): string | undefined {
  return commandText(kind, data) ?? trafficText(kind, data);
}

/** Whose call a connection is of, and whether that is more than a guess; undefined for none. */
export function tieText({ tool_use_id: call, tied }: Record<string, unknown>): string | undefined {
  if (typeof call !== 'string' || (tied !== 'process' && tied !== 'hooks')) return undefined;
  return `of call ${call}${tied === 'hooks' ? ' (by the hooks alone)' : ''}`;
}

/** What went through a connection that has ended, or through many. */
function trafficText(kind: string | undefined, data: Record<string, unknown>): string | undefined {
  const { host, port, connections, sent, received, ms } = data;
  if (kind !== 'network.end') return undefined;
  const where = typeof host === 'string' ? `${host}:${String(port)}` : 'various hosts';
  const bytes = sent === null ? 'how much is not known' : `${String(sent)} bytes out, ${String(received)} in`;
  const many = typeof connections === 'number' ? `${connections} connections ended` : 'ended';
  return [
    `${where} ${many}: ${bytes}`,
    `${String(ms)} ms${typeof connections === 'number' ? ' at most' : ''}`,
    tieText(data),
  ]
    .filter((part) => part !== undefined)
    .join(', ');
}

/** A command that the broker ran (docs/protocol/exec.md), undefined for what is none. */
function commandText(kind: string | undefined, data: Record<string, unknown>): string | undefined {
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
