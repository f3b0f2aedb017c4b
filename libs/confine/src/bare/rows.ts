// The manifest of a session without a mount view: what tiers T2 and T3 say is data, and this is the one reading of it.
import type { Property, Ruleset } from '@nd7/policy';
import type { Proof } from '../launch.js';
import type { ManifestRow, Promised } from '../manifest.js';
import { resolvePath } from '../view/resolve.js';
import type { BareBuilt } from './build.js';

/** What a tier gives. */
export interface TierTable {
  /** With the newest Landlock that it makes use of, in the order of the properties. */
  full: Readonly<Record<Property, Promised>>;
  /** What an older Landlock takes from that: rows by the version that they need. */
  needs: readonly { abi: number; property: Property; promised: Promised }[];
  /** Who hides in writable folders, where somebody is asked about every open. */
  readsBy: string;
  /** What it means that something hidden there, as this path, is not. */
  open(path: string): string;
  /** Properties that hold as far as folders were searched. */
  searched: readonly Property[];
  /** What becomes of sockets that the policy grants. */
  granted(names: string): string;
}

/** A session of such a tier. */
export interface BareSession {
  ruleset: Ruleset;
  built: BareBuilt;
  proofs: readonly Proof[];
  /** The version of Landlock that is used. */
  landlock: number;
  /** What this session has in place of what the table says. */
  instead: Partial<Readonly<Record<Property, Promised>>>;
}

/** Its manifest, in the order of the properties. */
export function rowsBy(table: TierTable, session: BareSession): ManifestRow[] {
  return (Object.keys(table.full) as Property[]).map((property) => {
    const { status, provider, proofs, limit } = narrowed(property, table, session);
    return {
      property,
      status,
      provider,
      proofs: session.proofs.filter(({ name }) => proofs?.includes(name) === true),
      limit,
    };
  });
}

/** What this ruleset, this disk and this kernel take away from what the tier gives. */
function narrowed(property: Property, table: TierTable, { ruleset, built, landlock, instead }: BareSession): Promised {
  const older = table.needs.find((need) => need.property === property && landlock < need.abi);
  const promised = older?.promised ?? instead[property] ?? table.full[property];
  const { shortfalls, asked, asksReads, found } = built;
  if (property === 'files.read' && asksReads) return { ...promised, provider: table.readsBy };
  if ((property === 'files.read' || property === 'files.masks') && !asksReads) {
    const masked = new Set(found.masked.map((path) => resolvePath(path)?.path));
    const open = asked.find((path) => masked.has(path) === (property === 'files.masks'));
    if (open !== undefined) return less(promised, table.open(open));
  }
  const unseen = shortfalls.filter(({ what }) => what === 'not searched').length;
  if (unseen > 0 && table.searched.includes(property))
    return less(promised, `${unseen} folders were not searched for them`);
  const linked = shortfalls.find(({ what }) => what === 'protected, but it has other names');
  if (linked !== undefined && property === 'files.leaves' && promised.status === 'full')
    return less(promised, `a protected file has another name, by which it can be changed: ${linked.path}`);
  if (property === 'tmp.private' && !ruleset.privateTmp)
    return { status: 'none', provider: '', limit: 'the policy shares the temporary folder' };
  const names = ruleset.sockets.map(({ name }) => name).join(', ');
  if (names !== '' && property === 'sockets.pathname')
    return { ...promised, limit: joined(promised.limit, table.granted(names)) };
  return promised;
}

function less(promised: Promised, limit: string): Promised {
  const status = promised.status === 'full' ? 'partial' : promised.status;
  return { ...promised, status, limit: joined(promised.limit, limit) };
}

const joined = (...limits: (string | undefined)[]): string => limits.filter((one) => one !== undefined).join('; ');
