/** Where a tile or an entry bundle of a log lies (C2SP tlog-tiles). */
export interface TileAddress {
  /** 0 to 63, or the bundles of leaves. */
  level: number | 'entries';
  n: number;
  /** 1 to 256; 256 is a full tile. */
  width: number;
}

/** Hashes in a full tile, leaves in a full bundle. */
export const TILE_WIDTH = 256;

const TILE_PATH = /^tile\/(entries|0|[1-9][0-9]?)\/((?:x[0-9]{3}\/){0,4})([0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** The path under the log's prefix, e.g. `tile/0/x001/067` or `tile/entries/000.p/7`. */
export function tilePath(level: number | 'entries', n: number, width: number = TILE_WIDTH): string {
  const digits = String(n).padStart(Math.ceil(String(n).length / 3) * 3, '0');
  const groups = digits.match(/[0-9]{3}/g) ?? [];
  const path = `tile/${String(level)}/${groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join('/')}`;
  const whole = width === TILE_WIDTH ? path : `${path}.p/${String(width)}`;
  if (parseTilePath(whole) === undefined)
    throw new RangeError(`no tile ${String(level)}/${String(n)} of width ${String(width)}`);
  return whole;
}

/** Reads such a path; undefined for anything that `tilePath` would not write. */
export function parseTilePath(path: string): TileAddress | undefined {
  const [, levelText, upper, last, widthText] = TILE_PATH.exec(path) ?? [];
  if (levelText === undefined || upper === undefined || last === undefined || upper.startsWith('x000'))
    return undefined;
  const level = levelText === 'entries' ? levelText : Number(levelText);
  const width = widthText === undefined ? TILE_WIDTH : Number(widthText);
  if ((level !== 'entries' && level > 63) || (widthText !== undefined && width >= TILE_WIDTH)) return undefined;
  return { level, n: Number(upper.replaceAll(/[x/]/g, '') + last), width };
}

/** How wide tile `n` of a level is in a tree of `size` leaves: 256, less for the last one, 0 where there is none. */
export function tileWidth(level: number | 'entries', n: number, size: number): number {
  const hashes = Math.floor(size / 256 ** (level === 'entries' ? 0 : level));
  return Math.max(0, Math.min(TILE_WIDTH, hashes - n * TILE_WIDTH));
}

/** Up to 256 leaves as an entry bundle: each behind its length in two bytes, big-endian. */
export function encodeEntryBundle(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length > TILE_WIDTH)
    throw new RangeError(`a bundle holds ${String(TILE_WIDTH)} leaves, not ${String(leaves.length)}`);
  const out = new Uint8Array(leaves.reduce((sum, leaf) => sum + 2 + leaf.length, 0));
  let at = 0;
  for (const leaf of leaves) {
    if (leaf.length > 0xffff)
      throw new RangeError(`a leaf in a bundle has at most 65535 bytes, not ${String(leaf.length)}`);
    out.set([leaf.length >> 8, leaf.length & 0xff], at);
    out.set(leaf, at + 2);
    at += 2 + leaf.length;
  }
  return out;
}

/** The leaves of a bundle; undefined where the lengths do not add up or it holds more than 256. */
export function decodeEntryBundle(bundle: Uint8Array): Uint8Array[] | undefined {
  const leaves: Uint8Array[] = [];
  let at = 0;
  while (at < bundle.length) {
    const [high, low] = [bundle[at], bundle[at + 1]];
    if (high === undefined || low === undefined || leaves.length === TILE_WIDTH) return undefined;
    const end = at + 2 + high * 256 + low;
    if (end > bundle.length) return undefined;
    leaves.push(bundle.slice(at + 2, end));
    at = end;
  }
  return leaves;
}
