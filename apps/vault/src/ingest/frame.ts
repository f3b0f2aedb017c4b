// Zstandard frames (RFC 8878), looked at before a byte is inflated: what the frame declares bounds what it may cost.
import zstd from '@mongodb-js/zstd';
import { declareContentSize } from '@nd7/segment';
import { Problem } from '../http/problem.js';

/** Decompressed bytes of a segment. */
export const MAX_SEGMENT = 8 * 1024 * 1024;
const MAX_WINDOW = 8 * 1024 * 1024;
const MAGIC = 0xfd2fb528;

/** How many bytes the body's only frame declares to hold, or why it is not taken. */
export function frameContentSize(body: Uint8Array): number | { refused: string; large?: true } {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  if (body.length < 6 || view.getUint32(0, true) !== MAGIC) return { refused: 'it does not begin with a zstd frame' };
  const descriptor = view.getUint8(4);
  const sizeFlag = descriptor >> 6;
  const single = (descriptor & 0x20) !== 0;
  const checksum = (descriptor & 0x04) !== 0;
  if ((descriptor & 0x08) !== 0) return { refused: 'a reserved bit is set' };
  if ((descriptor & 0x03) !== 0) return { refused: 'it needs a dictionary' };
  let at = 5;
  if (!single) {
    const window = view.getUint8(at);
    at += 1;
    const base = 2 ** (10 + (window >> 3));
    if (base + (base / 8) * (window & 7) > MAX_WINDOW) return { refused: 'its window is over 8 MiB' };
  }
  const sizeBytes = sizeFlag === 0 ? (single ? 1 : 0) : 2 ** sizeFlag;
  if (sizeBytes === 0) return { refused: 'it does not say its content size' };
  if (body.length < at + sizeBytes) return { refused: 'it ends within its header' };
  const size = readSize(view, at, sizeBytes);
  at += sizeBytes;
  if (size > MAX_SEGMENT) return { refused: `it declares ${String(size)} bytes of content`, large: true };
  const end = endOfBlocks(view, at);
  if (end === undefined) return { refused: 'it ends within a block' };
  at = end + (checksum ? 4 : 0);
  if (at > body.length) return { refused: 'it ends before its checksum' };
  if (at < body.length) return { refused: 'something follows the frame' };
  return size;
}

function readSize(view: DataView, at: number, bytes: number): number {
  if (bytes === 1) return view.getUint8(at);
  if (bytes === 2) return view.getUint16(at, true) + 256;
  if (bytes === 4) return view.getUint32(at, true);
  return Number(view.getBigUint64(at, true));
}

/** Just past the last block, by the block headers alone. */
function endOfBlocks(view: DataView, from: number): number | undefined {
  let at = from;
  for (;;) {
    if (at + 3 > view.byteLength) return undefined;
    const header = view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
    const [last, type, size] = [header & 1, (header >> 1) & 3, header >> 3];
    at += 3 + (type === 1 ? 1 : size); // a run-length block holds one byte whatever it stands for
    if (at > view.byteLength) return undefined;
    if (last === 1) return at;
  }
}

/** A body as it is kept and as it reads. */
export interface Entries {
  /** The bytes of the entries. */
  plain: Buffer;
  /** One zstd frame: as received, or made here from a body that came plain. */
  frame: Buffer;
}

/** Takes a body apart by its content encoding. Throws a Problem: `bad-encoding`, `bad-frame`, `too-large`. */
export async function entriesOf(body: Buffer, encoding: string | undefined): Promise<Entries> {
  if (encoding === undefined || encoding === 'identity') {
    if (body.length > MAX_SEGMENT)
      throw new Problem('too-large', 'a segment holds at most 8 MiB of entries: cut it smaller');
    return { plain: body, frame: await compress(body) };
  }
  if (encoding !== 'zstd')
    throw new Problem(
      'bad-encoding',
      `content-encoding is ${JSON.stringify(encoding.slice(0, 40))}: send zstd or identity`,
    );
  const size = frameContentSize(body);
  if (typeof size !== 'number')
    throw new Problem(size.large === true ? 'too-large' : 'bad-frame', `the body is not taken: ${size.refused}`);
  return { plain: await inflate(body, size), frame: body };
}

/** Inflates a frame that passed `frameContentSize`: one call into a buffer of the declared size. */
export async function inflate(frame: Buffer, size: number): Promise<Buffer> {
  let plain: Buffer;
  try {
    plain = await zstd.decompress(frame);
  } catch {
    throw new Problem('bad-frame', 'the body is not taken: its frame cannot be decompressed');
  }
  if (plain.length !== size)
    throw new Problem('bad-frame', 'the body is not taken: its content is not as long as it declares');
  return plain;
}

/** One frame that says its content size, as a body that came plain is kept. */
export async function compress(plain: Buffer): Promise<Buffer> {
  const frame = declareContentSize(await zstd.compress(plain, 3), plain.length);
  if (frame === undefined) throw new Error('the zstd encoder made no frame');
  return bufferOf(frame);
}

/** The same bytes as a Buffer: what crosses a thread's border comes out as a Uint8Array. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
