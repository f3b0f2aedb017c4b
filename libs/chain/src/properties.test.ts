import { createKernel } from '@nd7/blake3';
import { nobleVerifier, type SignatureVerifier } from '@nd7/tlog';
import { blake3 } from '@noble/hashes/blake3.js';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify as nodeVerify,
  type KeyObject,
} from 'node:crypto';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { ChainWalk, walk, type Head } from './index.js';

const session = 'p-1';
const kernel = createKernel();
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const hashOf = (bytes: Uint8Array | string) => hex(blake3(typeof bytes === 'string' ? Buffer.from(bytes) : bytes));
const genesisOf = (id: string) => hashOf(`nd7 session v1\n${id}\n`);

// Test keys are honest, so that OpenSSL alone decides as the strict rule does, many times quicker than noble.
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const imported = new Map<string, KeyObject>();
function check(key: string, message: Uint8Array, signature: string): boolean {
  let object = imported.get(key);
  if (!object) {
    try {
      object = createPublicKey({ key: Buffer.concat([SPKI, Buffer.from(key, 'hex')]), format: 'der', type: 'spki' });
    } catch {
      return false;
    }
    imported.set(key, object);
  }
  return nodeVerify(null, message, object, Buffer.from(signature, 'hex'));
}
const quick: SignatureVerifier = (items) =>
  Promise.resolve(items.map((i) => check(hex(i.key), i.message, hex(i.signature))));

// --- a maker of logs -----------------------------------------------------------------------------------------------------
const rawPublic = (key: KeyObject) =>
  createPublicKey(key.export({ format: 'pem', type: 'pkcs8' }) as string)
    .export({ format: 'der', type: 'spki' })
    .subarray(12)
    .toString('hex');
const keyRing = Array.from({ length: 8 }, () =>
  createPrivateKey(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })),
);
const publics = keyRing.map(rawPublic);
const signBy = (i: number, text: string) => sign(null, Buffer.from(text), keyRing[i] as KeyObject).toString('hex');

/** A log of `count` entries; a seal after every `every` of them, where that is not 0. */
function makeLog(count: number, every: number): { bytes: Uint8Array; head: Head } {
  let prev = genesisOf(session);
  let key = 1;
  const lines: string[] = [];
  for (let seq = 0; seq < count; seq++) {
    let rest = `"time":"2026-11-29T19:41:00.${String(seq % 1000).padStart(3, '0')}Z","source":"intent:claude-code","kind":"tool.before","data":{"n":${String(seq)},"t":"seal é \\u0073"}}`;
    if (seq === 0 && every > 0) {
      const cert = signBy(0, `nd7-session/v1\n${session}\n${String(publics[1])}\n`);
      rest = `"source":"recorder:nd7","kind":"session.start","data":{"machine":"${String(publics[0])}","key":"${String(publics[1])}","cert":"${cert}"}}`;
    } else if (every > 0 && seq % every === 0) {
      const next = 1 + (key % 7);
      const sig = signBy(key, `nd7-seal/v1\n${session}\n${String(seq)}\n${prev}\n${String(publics[next])}\n`);
      rest = `"kind":"seal","data":{"sig":"${sig}","next":"${String(publics[next])}"},"source":"recorder:nd7"}`;
      key = next;
    }
    const line = `{"v":1,"seq":${String(seq)},"prev":"${prev}",${rest}`;
    prev = hashOf(line);
    lines.push(`${line}\n`);
  }
  return { bytes: new Uint8Array(Buffer.from(lines.join(''))), head: { entries: count, hash: prev } };
}

// --- a second reading of the format, slow and plain ---------------------------------------------------------------------------
class Bad extends Error {}

/** JSON by RFC 8259, depth 256, with the keys that stand twice. */
function plainParse(text: string): { value: unknown; twice: boolean } {
  let at = 0;
  let twice = false;
  const space = () => {
    while (' \t\r\n'.includes(text[at] ?? 'x')) at++;
  };
  const need = (c: string) => {
    if (text[at] !== c) throw new Bad();
    at++;
  };
  const string = (): string => {
    const match = /^"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/.exec(text.slice(at));
    if (!match) throw new Bad();
    at += match[0].length;
    return JSON.parse(match[0]) as string;
  };
  const value = (depth: number): unknown => {
    space();
    const c = text[at];
    if (c === '"') return string();
    if (c === '{' || c === '[') {
      if (depth === 256) throw new Bad();
      const close = c === '{' ? '}' : ']';
      const entries = new Map<string, unknown>();
      at++;
      space();
      if (text[at] === close) at++;
      else {
        for (;;) {
          space();
          const key = c === '{' ? string() : String(entries.size);
          if (c === '{') {
            space();
            need(':');
          }
          const inner = value(depth + 1);
          if (entries.has(key)) twice = true;
          entries.set(key, inner);
          space();
          if (text[at] === close) {
            at++;
            break;
          }
          need(',');
        }
      }
      return c === '{' ? entries : [...entries.values()];
    }
    const match = /^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)/.exec(text.slice(at));
    if (!match) throw new Bad();
    at += match[0].length;
    return { raw: match[0] };
  };
  const result = value(0);
  space();
  if (at < text.length || !(result instanceof Map)) throw new Bad();
  return { value: result, twice };
}

type Named = { entries: number; head: string } | { bad_entry: number; reason: string };

function naive(log: Uint8Array, head?: Head): Named {
  let prev = genesisOf(session);
  if (head?.entries === 0 && head.hash !== prev) return { bad_entry: 0, reason: 'head-mismatch' };
  let key: string | null = null;
  let seq = 0;
  const bytes = Buffer.from(log);
  for (let at = 0; at < bytes.length; seq++) {
    const bad = (reason: string): Named => ({ bad_entry: seq, reason });
    const end = bytes.indexOf(10, at);
    if ((end < 0 ? bytes.length : end) - at > 1_048_576) return bad('too-long');
    if (end < 0) return bad('torn-tail');
    const line = bytes.subarray(at, end);
    at = end + 1;
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line);
    } catch {
      return bad('not-utf8');
    }
    let entry: Map<string, unknown>;
    try {
      const parsed = plainParse(text);
      if (parsed.twice) return bad('duplicate-key');
      entry = parsed.value as Map<string, unknown>;
    } catch {
      return bad('bad-json');
    }
    if (text.startsWith('{"v":') && !text.startsWith('{"v":1,')) return bad('unsupported-version');
    const match = /^\{"v":1,"seq":(0|[1-9][0-9]{0,15}),"prev":"([0-9a-f]{64})",/.exec(text);
    if (!match) return bad('bad-prefix');
    if (match[1] !== String(seq)) return bad('wrong-seq');
    if (match[2] !== prev) return bad(seq === 0 ? 'wrong-genesis' : 'wrong-prev');
    const data = entry.get('data');
    const inner: Map<string, unknown> =
      data instanceof Map ? (data as Map<string, unknown>) : new Map<string, unknown>();
    const own = entry.get('source') === 'recorder:nd7';
    const form = (n: number, v: unknown) => typeof v === 'string' && new RegExp(`^[0-9a-f]{${String(n)}}$`).test(v);
    if (seq === 0 && own && entry.get('kind') === 'session.start' && inner.has('key')) {
      const [machine, first, cert] = ['machine', 'key', 'cert'].map((name) => inner.get(name)) as string[];
      if (!form(64, machine) || !form(64, first) || !form(128, cert)) return bad('bad-seal');
      if (!check(machine ?? '', Buffer.from(`nd7-session/v1\n${session}\n${String(first)}\n`), cert ?? ''))
        return bad('bad-seal');
      key = first as string;
    } else if (own && entry.get('kind') === 'seal') {
      const [next, sig] = ['next', 'sig'].map((name) => inner.get(name)) as string[];
      if (key === null || !form(64, next) || !form(128, sig)) return bad('bad-seal');
      if (!check(key, Buffer.from(`nd7-seal/v1\n${session}\n${String(seq)}\n${prev}\n${String(next)}\n`), sig ?? ''))
        return bad('bad-seal');
      key = next as string;
    }
    prev = hashOf(line);
    if (head?.entries === seq + 1 && head.hash !== prev) return bad('head-mismatch');
  }
  if (head && head.entries > seq) return { bad_entry: seq, reason: 'truncated' };
  return { entries: seq, head: prev };
}

// --- the walk, cut anyhow ---------------------------------------------------------------------------------------------------
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

type Change = (log: Buffer) => Buffer;
const applyAll = (changes: readonly Change[], bytes: Uint8Array): Uint8Array =>
  new Uint8Array(changes.reduce<Buffer>((b, change) => (b.length === 0 ? b : change(b)), Buffer.from(bytes)));
const at = fc.nat({ max: 1_000_000 });
const splice = (log: Buffer, from: number, to: number, put: Uint8Array) =>
  Buffer.concat([log.subarray(0, from), put, log.subarray(to)]);
const oneByte: fc.Arbitrary<Change> = fc.oneof(
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
const linesOf = (log: Buffer): Buffer[] =>
  log
    .toString('latin1')
    .split('\n')
    .slice(0, -1)
    .map((line) => Buffer.from(`${line}\n`, 'latin1'));
const anyChange: fc.Arbitrary<Change> = fc.oneof(
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
