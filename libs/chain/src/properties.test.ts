// Any change to a log is found and named, however its bytes come: held against a second reading of the format.
import { createKernel } from '@nd7/blake3';
import { nobleVerifier } from '@nd7/tlog';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { anyChange, applyAll, at, linesOf, oneByte } from './changes.fixture.js';
import { ChainWalk, walk, type Head } from './index.js';
import { makeLog, publics, quick, session } from './made-log.fixture.js';
import { naive, type Named } from './naive.fixture.js';

const kernel = createKernel();

/** The walk's verdict over the log in pieces, cut anyhow. */
async function walked(log: Uint8Array, cuts: readonly number[], head?: Head): Promise<Named & { lines: number }> {
  const chain = new ChainWalk({ session, kernel, verify: quick, ...(head && { head }) });
  let at = 0;
  for (const cut of [...cuts].map((c) => c % (log.length + 1)).sort((a, b) => a - b)) {
    await chain.push(log.slice(at, cut)); // a copy that is spoilt afterwards: the walk must not keep it
    at = cut;
  }
  const last = log.slice(at);
  await chain.push(last);
  last.fill(0);
  const r = await chain.finish();
  const named =
    r.verdict === 'intact'
      ? { entries: r.entries, head: r.head }
      : { bad_entry: r.bad_entry ?? -1, reason: r.reason ?? '' };
  return { ...named, lines: r.lines };
}

const lineCount = (log: Uint8Array) => log.reduce((n, byte) => n + (byte === 10 ? 1 : 0), 0);
const expected = (log: Uint8Array, head?: Head) => ({ ...naive(log, head), lines: lineCount(log) });

const shapes = [makeLog(1, 0), makeLog(3, 1), makeLog(7, 0), makeLog(12, 3), makeLog(40, 5), makeLog(0, 0)];
const shape = fc.constantFrom(...shapes);
const cuts = fc.array(at, { maxLength: 12 });
const runs = { numRuns: 400 };

test('one byte flipped, dropped, doubled or moved anywhere is found, and the entry named is the one or the next', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...shapes.slice(0, -1)), oneByte, cuts, async ({ bytes, head }, change, where) => {
      const changed = new Uint8Array(change(Buffer.from(bytes)));
      if (Buffer.compare(changed, bytes) === 0) return;
      const result = await walked(changed, where, head);
      expect(result).toEqual(expected(changed, head));
      let same = 0;
      while (changed[same] === bytes[same]) same++;
      const entry = lineCount(bytes.subarray(0, same));
      expect([entry, entry + 1]).toContain('bad_entry' in result ? result.bad_entry : 'intact');
    }),
    { numRuns: 1500 },
  );
}, 120_000);

test('any changes, any chunking, any head: the verdict of a second reading of the format', async () => {
  const someHead = fc.oneof(fc.constant('none'), fc.constant('own'), fc.nat({ max: 45 }));
  await fc.assert(
    fc.asyncProperty(
      shape,
      fc.array(anyChange, { maxLength: 3 }),
      cuts,
      someHead,
      async (log, changes, where, which) => {
        const changed = applyAll(changes, log.bytes);
        const head =
          which === 'none' ? undefined : which === 'own' ? log.head : { entries: which as number, hash: log.head.hash };
        expect(await walked(changed, where, head)).toEqual(expected(changed, head));
      },
    ),
    runs,
  );
}, 120_000);

test('in these logs most lines are taken in runs, so that what is changed here is changed in them', async () => {
  let taken = 0;
  const counting = { ...kernel, run: (...args: Parameters<typeof kernel.run>) => count(kernel.run(...args)) };
  const count = (found: ReturnType<typeof kernel.run>) => ((taken += found.count), found);
  const { bytes, head } = makeLog(40, 5);
  expect(await walk(bytes, { session, kernel: counting, verify: quick, head })).toMatchObject({ verdict: 'intact' });
  expect(taken).toBeGreaterThan(20);
});

test('every chunk size gives the same', async () => {
  const { bytes, head } = makeLog(6, 2);
  for (let size = 1; size < 400; size++) {
    const chain = new ChainWalk({ session, kernel, verify: quick, head });
    for (let i = 0; i < bytes.length; i += size) await chain.push(bytes.subarray(i, i + size));
    expect(await chain.finish()).toMatchObject({
      verdict: 'intact',
      entries: 6,
      head: head.hash,
      seals: { sealedTo: 4, seals: 2 },
    });
  }
}, 60_000);

test('random bytes never throw', async () => {
  const token = fc.constantFrom(
    '{"v":1,"seq":0,"prev":"',
    '{"v":',
    '"',
    '\\',
    '{',
    '[',
    '\n',
    '}',
    ':',
    'é',
    '\u0000',
    '\\u',
    '"source":"recorder:nd7"',
    '"kind":"seal"',
  );
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.array(token, { maxLength: 60 }).map((parts) => new Uint8Array(Buffer.from(parts.join('')))),
  );
  await fc.assert(
    fc.asyncProperty(noise, cuts, async (bytes, where) => {
      expect(await walked(bytes, where)).toEqual(expected(bytes));
    }),
    runs,
  );
}, 60_000);

test('a segment resumes after another, with the key in force', async () => {
  const { bytes, head } = makeLog(40, 5);
  const cut = linesOf(Buffer.from(bytes)).slice(0, 17);
  const first = await walk(new Uint8Array(Buffer.concat(cut)), { session, kernel, verify: nobleVerifier });
  const start = { entries: first.entries, head: first.head, key: first.seals.key };
  const rest = bytes.subarray(Buffer.concat(cut).length);
  const second = await walk(rest, { session, kernel, verify: nobleVerifier, start, head, marks: [17, 20, 40] });
  expect(second).toMatchObject({
    verdict: 'intact',
    entries: 40,
    head: head.hash,
    lines: 23,
    seals: { sealedTo: 35, seals: 4 },
  });
  expect([...second.marks.keys()].sort()).toEqual([17, 20, 39, 40]);
  const wrongKey = await walk(rest, {
    session,
    kernel,
    verify: nobleVerifier,
    start: { ...start, key: String(publics[0]) },
  });
  expect(wrongKey).toMatchObject({ verdict: 'broken', bad_entry: 20, reason: 'bad-seal', entries: 20 });
});

const hasPython = spawnSync('python3', ['--version']).status === 0;

(hasPython ? test : test.skip)(
  'the Python reference agrees on changed logs (needs python3)',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'nd7-chain-'));
    try {
      const log = makeLog(7, 3);
      const cases = fc
        .sample(fc.array(anyChange, { minLength: 1, maxLength: 2 }), { numRuns: 60, seed: 7 })
        .map((changes) => applyAll(changes, log.bytes));
      cases.forEach((bytes, i) => {
        writeFileSync(join(folder, `${String(i)}.jsonl`), bytes);
      });
      const reference = fileURLToPath(new URL('../../../tests/reference', import.meta.url));
      const script = `
import sys, json
sys.path.insert(0, ${JSON.stringify(reference)})
sys.dont_write_bytecode = True
import nd7ref
out = []
for i in range(${String(cases.length)}):
    try:
        n, h = nd7ref.verify(${JSON.stringify(session)}, open(f"${folder}/{i}.jsonl", "rb").read(), (${String(log.head.entries)}, "${log.head.hash}"))
        out.append({"entries": n, "head": h})
    except nd7ref.Broken as e:
        out.append({"bad_entry": e.seq, "reason": e.reason})
print(json.dumps(out))`;
      const answers = JSON.parse(execFileSync('python3', ['-c', script], { encoding: 'utf8' })) as unknown[];
      expect(cases.map((bytes) => naive(bytes, log.head))).toEqual(answers);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  120_000,
);
