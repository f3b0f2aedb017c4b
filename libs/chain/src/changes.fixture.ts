// What may be done to a log.
import fc from 'fast-check';
import { hashOf } from './made-log.fixture.js';

/** Something done to a log. */
export type Change = (log: Buffer) => Buffer;
export const applyAll = (changes: readonly Change[], bytes: Uint8Array): Uint8Array =>
  new Uint8Array(changes.reduce<Buffer>((b, change) => (b.length === 0 ? b : change(b)), Buffer.from(bytes)));
/** A place anywhere. */
export const at = fc.nat({ max: 1_000_000 });
const splice = (log: Buffer, from: number, to: number, put: Uint8Array) =>
  Buffer.concat([log.subarray(0, from), put, log.subarray(to)]);
/** One byte flipped, dropped, doubled or moved. */
export const oneByte: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(at, fc.integer({ min: 1, max: 255 })).map(([i, x]): Change => (log) => {
    const k = i % log.length;
    return splice(log, k, k + 1, Uint8Array.of((log[k] as number) ^ x));
  }),
  at.map(
    (i): Change =>
      (log) =>
        splice(log, i % log.length, (i % log.length) + 1, new Uint8Array(0)),
  ),
  at.map(
    (i): Change =>
      (log) =>
        splice(log, i % log.length, i % log.length, log.subarray(i % log.length, (i % log.length) + 1)),
  ),
  fc.tuple(at, at).map(([i, j]): Change => (log) => {
    const byte = log.subarray(i % log.length, (i % log.length) + 1);
    const without = splice(log, i % log.length, (i % log.length) + 1, new Uint8Array(0));
    return splice(without, j % log.length, j % log.length, byte);
  }),
);
export const linesOf = (log: Buffer): Buffer[] =>
  log
    .toString('latin1')
    .split('\n')
    .slice(0, -1)
    .map((line) => Buffer.from(`${line}\n`, 'latin1'));
/** Besides: bytes put in, the end cut off, lines dropped, doubled, swapped or reversed, and an edit whose links are mended. */
export const anyChange: fc.Arbitrary<Change> = fc.oneof(
  oneByte,
  fc.tuple(at, fc.uint8Array({ maxLength: 40 })).map(
    ([i, put]): Change =>
      (log) =>
        splice(log, i % log.length, i % log.length, put),
  ),
  at.map(
    (i): Change =>
      (log) =>
        log.subarray(0, i % log.length),
  ),
  fc.tuple(at, fc.constantFrom('drop', 'double', 'swap', 'reverse')).map(([i, what]): Change => (log) => {
    const lines = linesOf(log);
    if (lines.length < 2) return log;
    const k = i % (lines.length - 1);
    const [a, b] = [lines[k] as Buffer, lines[k + 1] as Buffer];
    lines.splice(k, 2, ...(what === 'drop' ? [b] : what === 'double' ? [a, a, b] : what === 'swap' ? [b, a] : [a, b]));
    return Buffer.concat(what === 'reverse' ? lines.reverse() : lines);
  }),
  // An edit within one entry whose links after it are mended: only seal, head or receipt can tell.
  at.map((i): Change => (log) => {
    const lines = linesOf(log).map((line) => line.toString('utf8').slice(0, -1));
    if (lines.length < 2) return log;
    const from = i % lines.length;
    let prev = '';
    return Buffer.from(
      lines
        .map((line, k) => {
          let out = line;
          if (k === from) out = line.replace(/"n":/, '"m":');
          if (k > from) out = line.replace(/"prev":"[^"]*"/, `"prev":"${prev}"`);
          prev = hashOf(out);
          return `${out}\n`;
        })
        .join(''),
    );
  }),
);
