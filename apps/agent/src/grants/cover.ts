// When one thing that is granted, denied or asked for holds for another.
import { isSame, type Wanted } from './wanted.js';

/** Whether a thing is the other one, or lies in it. */
export function isUnder(wanted: Wanted, other: Wanted): boolean {
  if (wanted.right !== other.right && !(wanted.right === 'read' && other.right === 'write')) return false;
  if (wanted.right !== 'net')
    return (
      isSame({ ...wanted, right: other.right, below: other.below }, other) ||
      (other.below && wanted.what.startsWith(`${other.what}/`))
    );
  const [host, ports] = hostAndPorts(wanted.what);
  const [otherHost, otherPorts] = hostAndPorts(other.what);
  const isHost =
    otherHost === host || otherHost === '*' || (otherHost.startsWith('*.') && host.endsWith(otherHost.slice(1)));
  return isHost && (otherPorts === '*' || otherPorts === ports) && (!wanted.raw || other.raw || otherPorts === '*');
}

/** A denial that names the very host or path is the person’s earlier word about it; one about more is not. */
export function namesSame(denied: Wanted, wanted: Wanted): boolean {
  return denied.right === 'net'
    ? hostAndPorts(denied.what)[0] === hostAndPorts(wanted.what)[0]
    : denied.what === wanted.what;
}

function hostAndPorts(what: string): [string, string] {
  const at = what.lastIndexOf(':');
  return [what.slice(0, at), what.slice(at + 1)];
}
