import {
  foldName,
  type LayerName,
  type LeafTreatment,
  type Mediator,
  type ProtectedLeaf,
  type Ruleset,
} from '@nd7/policy';

const MAGIC = 'nd7-name';
const VERSION = 1;
const MAX_PATH = 4095;
const AT = { anywhere: 0, 'git-dir': 1, folder: 2 } as const satisfies Record<ProtectedLeaf['at'], number>;
const TREATMENT = { record: 0, mediate: 1, refuse: 2 } as const satisfies Record<LeafTreatment, number>;
const MEDIATOR = { 'git-config': 1, 'git-pointer': 2, 'claude-state': 3 } as const satisfies Record<Mediator, number>;
/** Layers whose word stands for itself (`leafAt`); all others speak for the person, with one voice. */
const VOICE: Partial<Record<LayerName, number>> = { fixed: 1, team: 2, project: 3 };

/**
 * The masks and protected names of a ruleset as the supervisor reads them (native/observe/src/names-table.c has the bytes), in the ruleset's
 * order. `heldFiles` are paths that masks hide by their names and that are let out because git holds what they hold. Throws RangeError for a
 * string with a NUL in it.
 */
export function encodeNames(ruleset: Pick<Ruleset, 'masks' | 'leaves'>, heldFiles: readonly string[] = []): Uint8Array {
  const { masks, leaves } = ruleset;
  const held = heldFiles.join('\0');
  const known = encoded.get(masks);
  if (known?.leaves === leaves && known.held === held) return known.bytes;
  const bytes = encode(ruleset, heldFiles);
  encoded.set(masks, { leaves, held, bytes });
  return bytes;
}

/** A ruleset does not change, and one process starts many sessions by the same. */
const encoded = new WeakMap<Ruleset['masks'], { leaves: Ruleset['leaves']; held: string; bytes: Uint8Array }>();

function encode(ruleset: Pick<Ruleset, 'masks' | 'leaves'>, heldFiles: readonly string[]): Uint8Array {
  const table = new Table();
  // A longer path is nobody's.
  const folder = (paths: readonly string[]): number =>
    table.list(paths.filter((path) => Buffer.byteLength(path) <= MAX_PATH).map((path) => table.string(path)));
  const names = (list: readonly string[]): number => table.list(list.map((name) => table.string(name)));
  const pattern = (text: string, fold: (part: string) => string = (part) => part): number =>
    table.list(text.split('/').map((part) => table.string(fold(part))));
  const masks = ruleset.masks.flatMap((mask) => [
    folder(mask.under),
    pattern(mask.pattern),
    table.list(mask.except.map((text) => pattern(text))),
    names(mask.notBelow),
    folder(mask.exceptTracked ? [...mask.exceptPaths, ...heldFiles] : mask.exceptPaths),
    Number(mask.exceptTracked),
  ]);
  const leaves = ruleset.leaves.flatMap((leaf) => [
    AT[leaf.at],
    folder(leaf.under),
    pattern(leaf.pattern, foldName),
    names(leaf.notBelow),
    folder(leaf.exceptPaths),
    Number(leaf.below),
    TREATMENT[leaf.treatment],
    leaf.mediator === null ? 0 : MEDIATOR[leaf.mediator],
    VOICE[leaf.source.layer] ?? 0,
  ]);
  const body = Buffer.concat([
    table.encode(),
    u32(ruleset.masks.length, ...masks),
    u32(ruleset.leaves.length, ...leaves),
  ]);
  return Buffer.concat([Buffer.from(MAGIC), u32(VERSION, 16 + body.length), body]);
}

/** Strings and lists of numbers, each of them once. */
class Table {
  readonly #strings = new Map<string, number>();
  readonly #lists = new Map<string, { index: number; numbers: readonly number[] }>();

  string(text: string): number {
    if (text.includes('\0')) throw new RangeError(`a name with a NUL character: ${JSON.stringify(text)}`);
    const index = this.#strings.get(text) ?? this.#strings.size;
    this.#strings.set(text, index);
    return index;
  }

  list(numbers: readonly number[]): number {
    const key = numbers.join();
    const known = this.#lists.get(key) ?? { index: this.#lists.size, numbers };
    this.#lists.set(key, known);
    return known.index;
  }

  encode(): Buffer {
    const strings = [...this.#strings.keys()].map((text) => Buffer.from(text));
    const lists = [...this.#lists.values()].map(({ numbers }) => numbers);
    return Buffer.concat([
      u32(strings.length),
      ...strings.flatMap((bytes) => [u32(bytes.length), bytes]),
      u32(lists.length),
      ...lists.map((numbers) => u32(numbers.length, ...numbers)),
    ]);
  }
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeUInt32LE(value, i * 4));
  return bytes;
}
