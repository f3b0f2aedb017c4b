import type { PolicyDocument } from '../document.js';
import { PolicyError } from '../failure.js';
import { parseHostRule, parsePortRange } from '../host.js';
import { expandPath, hasHalfCharacter, isWithin } from '../path.js';
import type { Places } from '../path.js';

/** What can be held back and taken in, by the word before the colon. */
const KINDS = ['read', 'write', 'exec', 'socket', 'host', 'raw', 'private', 'loopback'] as const;
export type ItemKind = (typeof KINDS)[number];

/** Above this the language takes no rule. */
const MAX_RULE = 1_024;

/** A path as a rule names it: from the project, the home folder, the temporary folder or the root on. */
export function written(path: string, places: Places): string {
  const [nearest] = [['.', places.project] as const, ['$TMP', places.tmp] as const, ['~', places.home] as const]
    .filter(([, folder]) => isWithin(path, folder))
    .sort((a, b) => b[1].length - a[1].length);
  return nearest === undefined ? path : nearest[0] + path.slice(nearest[1].length);
}

/**
 * The nearest folder, or the path itself, that a rule can name: not one with a `*`, with bytes that are no text (they were read as U+FFFD), or
 * too long.
 */
export function nameable(path: string, places: Places): string {
  const isFine = !/[*\0\ufffd]/.test(path) && !hasHalfCharacter(path) && written(path, places).length <= MAX_RULE;
  return isFine || path === '/' ? path : nameable(path.slice(0, path.lastIndexOf('/')) || '/', places);
}

/** Items as a policy of their own. Throws `PolicyError` for what is no item. */
export function policyOfItems(items: readonly string[], places: Places): PolicyDocument {
  const of = (kind: ItemKind): string[] => read.filter((item) => item.kind === kind).map(({ what }) => what);
  const read = [...new Set(items)].sort().map((item) => itemOf(item, places));
  const paths = (kind: 'read' | 'write' | 'exec') => (of(kind).length === 0 ? {} : { [kind]: { allow: of(kind) } });
  const files = { ...paths('read'), ...paths('write'), ...paths('exec') };
  const hosts = [
    ...of('host'),
    ...of('raw').map((host) => ({ host, raw: true })),
    ...of('private').map((host) => ({ host, privateAddresses: true })),
  ];
  const [sockets, loopback] = [of('socket'), of('loopback')];
  return {
    nd7: 1,
    ...(Object.keys(files).length === 0 ? {} : { files }),
    ...(sockets.length === 0 ? {} : { sockets: { allow: sockets } }),
    ...(hosts.length + loopback.length === 0
      ? {}
      : {
          network: {
            ...(hosts.length === 0 ? {} : { allow: hosts }),
            ...(loopback.length === 0 ? {} : { loopback }),
          },
        }),
  };
}

function itemOf(item: string, places: Places): { kind: ItemKind; what: string } {
  const [, word = '', what = ''] = /^([a-z]+):(.*)$/s.exec(item) ?? [];
  const kind = KINDS.find((one) => one === word);
  if (kind === undefined || what === '')
    throw new PolicyError(
      'unknown-name',
      `"${item}" is no item`,
      `Items are ${KINDS.map((one) => `${one}:…`).join(' ')}, as nd7 learn lists them.`,
    );
  // What cannot be meant is said now and not after the command has run.
  if (kind === 'read' || kind === 'write' || kind === 'exec') expandPath(what, places);
  else if (kind === 'loopback') parsePortRange(what);
  else if (kind !== 'socket') parseHostRule(what);
  return { kind, what };
}
