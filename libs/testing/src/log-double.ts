import { fromHex, toBase64, utf8 } from '@nd7/entry';
import { formatReceipt, formatStatement, type Statement } from '@nd7/receipt';
import { generateKeyPair, type KeyPair } from '@nd7/signing';
import {
  consistencyProof,
  formatCheckpoint,
  formatVkey,
  inclusionProof,
  leafHash,
  newNodes,
  parseCheckpoint,
  parseNote,
  signNote,
  treeRoot,
  verifyConsistency,
  type HashReader,
} from '@nd7/tlog';

/** A transparency log in memory: real hashes, real signatures, every checkpoint kept as it was published. */
export class LogDouble {
  readonly key: KeyPair = generateKeyPair();
  readonly leaves: Uint8Array[] = [];
  readonly #nodes = new Map<string, Uint8Array>();
  /** Published notes, by size, ascending. */
  readonly checkpoints: { size: number; note: string }[] = [];

  constructor(readonly origin: string) {}

  get vkey(): string {
    return formatVkey(this.origin, 1, fromHex(this.key.publicKey) ?? new Uint8Array(32));
  }

  readonly read: HashReader = (level, index) => {
    const node = this.#nodes.get(`${String(level)}/${String(index)}`);
    if (node === undefined) throw new Error(`node ${String(level)}/${String(index)} is not complete`);
    return node;
  };

  /** Gives a statement its place. */
  async append(statement: Statement): Promise<number> {
    const leaf = utf8(formatStatement(statement));
    const index = this.leaves.length;
    this.leaves.push(leaf);
    for (const { level, index: at, hash } of await newNodes(index, [leafHash(leaf)], this.read))
      this.#nodes.set(`${String(level)}/${String(at)}`, hash);
    return index;
  }

  /** Signs the tree as it is. */
  async publish(): Promise<void> {
    const size = this.leaves.length;
    if (size === 0 || this.checkpoints.at(-1)?.size === size) return;
    const text = formatCheckpoint({ origin: this.origin, size, root: await treeRoot(size, this.read) });
    this.checkpoints.push({ size, note: await signNote(text, this.origin, this.key) });
  }

  /** The leaf's receipt by the first published checkpoint that has it; undefined while there is none. */
  async receipt(index: number): Promise<string | undefined> {
    const [leaf, checkpoint] = [this.leaves[index], this.checkpoints.find(({ size }) => size > index)];
    if (leaf === undefined || checkpoint === undefined) return undefined;
    return formatReceipt(leaf, index, await inclusionProof(index, checkpoint.size, this.read), checkpoint.note);
  }

  /** Forgets everything after so many leaves, as a restored backup does. */
  cutBack(size: number): void {
    this.leaves.length = size;
    for (const name of this.#nodes.keys()) {
      const [level = 0, index = 0] = name.split('/').map(Number);
      if ((index + 1) * 2 ** level > size) this.#nodes.delete(name);
    }
    while ((this.checkpoints.at(-1)?.size ?? 0) > size) this.checkpoints.pop();
  }

  /** Throws where the published checkpoints are not one growing tree of these leaves. */
  async check(): Promise<void> {
    let before: { size: number; root: Uint8Array } | undefined;
    for (const { note } of this.checkpoints) {
      const checkpoint = parseCheckpoint(parseNote(note)?.text ?? '');
      if (checkpoint === undefined) throw new Error('a published checkpoint is none');
      const { size, root } = checkpoint;
      if (toBase64(root) !== toBase64(await treeRoot(size, this.read)))
        throw new Error(`the root of ${String(size)} leaves is another one`);
      if (
        before !== undefined &&
        !verifyConsistency(before.size, before.root, size, root, await consistencyProof(before.size, size, this.read))
      ) {
        throw new Error(`the tree of ${String(size)} does not extend that of ${String(before.size)}`);
      }
      before = { size, root };
    }
  }
}
