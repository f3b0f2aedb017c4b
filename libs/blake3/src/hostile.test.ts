import { createKernel } from './kernel.js';
import { Fault } from './lines.js';
import { referenceKernel } from './reference.js';

// What a sender might make up to cost time or memory. The kernel's memory is fixed; that the time is linear shows in
// these coming back at all: each would take minutes where something is quadratic.

const kernel = createKernel();
const MIB = 1_048_576;

/** The fault that both kernels name for one line. */
function fault(line: string): number | undefined {
  const chunk = Buffer.from(`${line}\n`);
  const first = kernel.scan(chunk).faults[0];
  expect(referenceKernel().scan(chunk).faults[0]).toBe(first);
  return first;
}

/** An object of as many different keys as fit into a line. */
function full(key: (i: number) => string, size = MIB): { line: string; keys: number } {
  const members: string[] = [];
  for (let length = 2; ;) {
    const member = `"${key(members.length)}":0`;
    length += Buffer.byteLength(member) + 1;
    if (length > size) return { line: `{${members.join()}}`, keys: members.length };
    members.push(member);
  }
}

/** `{…}` with one member more, its first key again. */
const withFirstAgain = (line: string) => `${line.slice(0, -1)},${/"[^"]*"/.exec(line)?.[0] ?? ''}:0}`;

test('brackets without end', () => {
  expect(fault(`{"a":${'['.repeat(1_000_000)}`)).toBe(Fault.badJson);
  expect(fault('{"a":'.repeat(200_000))).toBe(Fault.badJson);
  expect(fault('['.repeat(1_000_000))).toBe(Fault.badJson);
  expect(fault(`{"a":${'['.repeat(255)}${']'.repeat(255)}}`)).toBe(Fault.ok);
  expect(fault(`{"a":${'['.repeat(256)}${']'.repeat(256)}}`)).toBe(Fault.badJson);
  expect(fault(`${'{"a":'.repeat(256)}0${'}'.repeat(256)}`)).toBe(Fault.ok);
  expect(fault(`${'{"a":'.repeat(257)}0${'}'.repeat(257)}`)).toBe(Fault.badJson);
}, 30_000);

test('a full line of short keys, and the same with the first again', () => {
  const { line, keys } = full((i) => i.toString(36), MIB - 20);
  expect(keys).toBeGreaterThan(90_000);
  expect(fault(line)).toBe(Fault.ok);
  expect(fault(withFirstAgain(line))).toBe(Fault.duplicateKey);
}, 60_000);

test('200,000 keys over nested objects that stay open', () => {
  // 255 levels of some 600 keys: the most that can be on the stack at once, all in the set.
  const level = Array.from({ length: 580 }, (_, i) => `"${i.toString(36)}":0,`).join('');
  const depth = Math.min(255, Math.floor((MIB - 10) / (level.length + 6)));
  const line = `${`{${level}"#":`.repeat(depth)}0${'}'.repeat(depth)}`;
  expect(fault(line)).toBe(Fault.ok);
  expect(fault(line.replace(/\}$/, ',"0":1}'))).toBe(Fault.duplicateKey);
}, 60_000);

test('keys that share length, beginning and end', () => {
  // The quick comparison looks at eight bytes at either end: here it can tell nothing apart.
  const { line } = full((i) => `samebeginning${i.toString(36).padStart(6, '0')}sameend.`, MIB - 60);
  expect(fault(line)).toBe(Fault.ok);
  expect(fault(withFirstAgain(line))).toBe(Fault.duplicateKey);
  const few = Array.from(
    { length: 16 },
    (_, i) => `"${'x'.repeat(30_000)}${String.fromCharCode(97 + i)}${'y'.repeat(30_000)}":0`,
  );
  expect(fault(`{${few.join()}}`)).toBe(Fault.ok);
  expect(fault(`{${few.join()},${few[3] ?? ''}}`)).toBe(Fault.duplicateKey);
}, 60_000);

test('a full line of keys that are nothing but escapes', () => {
  const { line } = full(
    (i) => [...i.toString(36)].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join(''),
    MIB - 60,
  );
  expect(fault(line)).toBe(Fault.ok);
  expect(fault(withFirstAgain(line))).toBe(Fault.duplicateKey);
  // The first key once more, but plain.
  expect(fault(`${line.slice(0, -1)},"0":1}`)).toBe(Fault.duplicateKey);
}, 60_000);

test('many objects just large enough for the set', () => {
  const one = `{${Array.from({ length: 17 }, (_, i) => `"${i}":0`).join()}}`;
  const line = `{"a":[${Array.from({ length: Math.floor((MIB - 20) / (one.length + 1)) }, () => one).join()}]}`;
  expect(fault(line)).toBe(Fault.ok);
  expect(fault(line.replace(/"16":0\}\]\}$/, '"0":0}]}'))).toBe(Fault.duplicateKey);
}, 60_000);

test('a doubled key leaves nothing behind: the next lines are judged by themselves', () => {
  const many = Array.from({ length: 40 }, (_, i) => `"k${i}":0`).join();
  const lines = [
    `{${many},"k3":1}`,
    `{${many}}`,
    `{"x":{${many},"k1":0},"y":{${many}}}`,
    `{${many},"z":[`,
    `{${many}}`,
  ];
  const expected = [Fault.duplicateKey, Fault.ok, Fault.duplicateKey, Fault.badJson, Fault.ok];
  const chunk = Buffer.from(
    `${Array.from({ length: 50 }, () => lines)
      .flat()
      .join('\n')}\n`,
  );
  expect([...kernel.scan(chunk).faults]).toEqual(Array.from({ length: 50 }, () => expected).flat());
});

test('nor does it leave anything in the set, however often', () => {
  // The set has 2^19 places; the seventeenth key is the first to be looked up in it, and here it is the first again.
  const line = `{${Array.from({ length: 16 }, (_, i) => `"${i}":0`).join()},"0":0}\n`;
  const chunk = Buffer.from(line.repeat(20_000));
  for (let i = 0; i < 3; i++) expect(kernel.scan(chunk).faults.every((f) => f === Fault.duplicateKey)).toBe(true);
  expect(fault(full((i) => i.toString(36), 500_000).line)).toBe(Fault.ok);
}, 60_000);

test('a full line of white space, of digits, of one escape after the other', () => {
  expect(fault(`{${' '.repeat(MIB - 2)}}`)).toBe(Fault.ok);
  expect(fault(`{"a":${'9'.repeat(MIB - 6)}}`)).toBe(Fault.ok);
  expect(fault(`{"a":0.${'0'.repeat(MIB - 20)}1e-${'7'.repeat(8)}}`)).toBe(Fault.ok);
  expect(fault(`{"a":"${'\\"'.repeat(524_283)}"}`)).toBe(Fault.ok);
  expect(fault(`{"a":"${'\\"'.repeat(524_283)}\\"}`)).toBe(Fault.badJson);
  expect(fault(`{"${'\\ud83d'.repeat(174_000)}":0}`)).toBe(Fault.ok);
}, 60_000);
