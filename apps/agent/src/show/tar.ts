// A tar archive (POSIX ustar), written file after file: enough for `nd7 export`, readable by every tar.

const BLOCK = 512;

/** The header block of one regular file. Names are ASCII of at most 100 + 155 bytes; the time is seconds since the epoch. */
export function tarHeader(name: string, size: number, time: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const [prefix, rest] = splitName(name);
  const put = (at: number, text: string) => block.set(Buffer.from(text, 'latin1'), at);
  const octal = (at: number, width: number, value: number) => put(at, value.toString(8).padStart(width - 1, '0'));
  put(0, rest);
  octal(100, 8, 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  // Sizes from 8 GiB on do not fit the octal field: then the base-256 form that GNU and BSD tar read.
  if (size < 0o100000000000) octal(124, 12, size);
  else {
    block[124] = 0x80;
    new DataView(block.buffer).setBigUint64(128, BigInt(size));
  }
  octal(136, 12, time);
  put(148, '        ');
  put(156, '0');
  put(257, 'ustar\u000000');
  put(345, prefix);
  const sum = block.reduce((a, b) => a + b, 0);
  put(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}

/** The zeros that fill a file's last block. */
export function tarPadding(size: number): Uint8Array {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

/** What ends an archive. */
export function tarEnd(): Uint8Array {
  return new Uint8Array(2 * BLOCK);
}

function splitName(name: string): [string, string] {
  if (name.length <= 100) return ['', name];
  const cut = name.lastIndexOf('/', 155);
  if (cut < 0 || name.length - cut - 1 > 100) throw new RangeError(`the name is too long for a tar archive: ${name}`);
  return [name.slice(0, cut), name.slice(cut + 1)];
}
