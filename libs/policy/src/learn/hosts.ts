import { decideHost } from '../decide.js';
import { parseHost } from '../host.js';
import type { Ruleset } from '../ruleset.js';
import type { Held, LearnInput, SeenHost } from './seen.js';

/** So many names below one are a reason to think of a wildcard. */
const NAMES = 4;
/** Words of the proxy that say: the tunnel carried something else than TLS with the name that was asked for. */
const NO_TLS = ['no-hello', 'other-name', 'not-tls', 'split', 'malformed', 'no-name', 'many-names'];

const rule = ({ host, port }: SeenHost): string =>
  `${host.includes(':') ? `[${host}]` : host}${port === null || port === 443 ? '' : `:${String(port)}`}`;

/** Hosts that a profile has to name besides what `draft` has, and what is held back of them. */
export function learnHosts(input: LearnInput, draft: Ruleset): { allow: string[]; held: Held[] } {
  const allow = new Set<string>();
  const cut = new Set<string>();
  const held: Held[] = [];
  const hold = (item: string, why: string): void => {
    held.push({ item, why, programs: [] });
  };
  for (const seen of input.hosts) {
    const host = parseHost(seen.host);
    if ('fault' in host || seen.port === null) continue;
    if (decideHost(draft.network, host, seen.port).allow && seen.allowed) continue;
    const name = rule(seen);
    if (seen.allowed) allow.add(name);
    else if (host.kind === 'ip' && seen.reason === 'no-rule')
      hold(`host:${name}`, 'an address and not a name: whose it is tomorrow, nobody says');
    else if (seen.reason === 'address')
      hold(
        `private:${name}`,
        'the name stands for an address of a private network, in which services often ask nobody',
      );
    else if (seen.reason === 'loopback')
      hold(`loopback:${String(seen.port)}`, 'a service of this machine, which may ask nobody who they are');
    else if (seen.reason === 'denied' || seen.reason === 'no-rule') hold(`host:${name}`, 'a rule in force refuses it');
    else if (NO_TLS.includes(seen.reason ?? '')) {
      cut.add(name);
      hold(
        `raw:${name}`,
        `what was sent there was not TLS with this name (${seen.reason ?? ''}): nobody sees who answers`,
      );
    }
  }
  // As a tunnel of TLS it was of no use.
  for (const name of cut) allow.delete(name);
  for (const parent of crowded([...allow]))
    hold(
      `host:*.${parent}`,
      'several names below it were reached, and are listed; a wildcard takes in those that nobody has seen',
    );
  return { allow: [...allow].sort(), held };
}

/** Names of at least two labels with several names right below them, of those reached at port 443. */
function crowded(rules: readonly string[]): string[] {
  const below = new Map<string, number>();
  for (const name of rules) {
    const parent = name.slice(name.indexOf('.') + 1);
    if (!name.includes(':') && parent.includes('.')) below.set(parent, (below.get(parent) ?? 0) + 1);
  }
  return [...below]
    .filter(([, count]) => count >= NAMES)
    .map(([parent]) => parent)
    .sort();
}
