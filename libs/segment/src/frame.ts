/** Zstandard's magic number, little-endian (RFC 8878, section 3.1.1). */
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];

/**
 * The same zstd frame with its content size in the header (RFC 8878, section 3.1.1.1). Encoders that stream leave the size out, and the vault
 * refuses what does not declare it: it decodes into a buffer of that size and nothing larger. Answers with the frame itself where it declares
 * one already; undefined for bytes that do not begin as a frame or that need a dictionary.
 */
export function declareContentSize(frame: Uint8Array, size: number): Uint8Array | undefined {
  const descriptor = frame[4];
  if (descriptor === undefined || MAGIC.some((byte, at) => frame[at] !== byte)) return undefined;
  if ((descriptor & 0x03) !== 0) return undefined; // a dictionary id follows the window
  const isSingleSegment = (descriptor & 0x20) !== 0;
  if (descriptor >> 6 !== 0 || isSingleSegment) return frame;
  // Descriptor, window byte, then the size as four bytes (flag 2), then the blocks as they were.
  const declared = new Uint8Array(frame.length + 4);
  declared.set(frame.subarray(0, 6));
  declared[4] = descriptor | 0x80;
  new DataView(declared.buffer).setUint32(6, size, true);
  declared.set(frame.subarray(6), 10);
  return declared;
}
