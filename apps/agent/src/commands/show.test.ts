import { blake3 } from '@noble/hashes/blake3.js';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { python } from '@nd7/testing';
import { CliError } from '../cli/io.js';
import { capturedIo, recordedHome, removeFolders, said, throwAwayFolder } from '../testing/cli.fixture.js';
import { exportSession } from './export.js';
import { show } from './show.js';

afterAll(removeFolders);

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const blobOf = (value: string) => {
  const bytes = new Uint8Array(Buffer.concat([Buffer.alloc(32, 7), Buffer.from(value)]));
  return { hash: hex(blake3(bytes)), bytes };
};
const large = blobOf('"the large value"');
const secret = blobOf('"the secret"');
const call = {
  tool_name: 'Bash',
  tool_use_id: 'toolu_9',
  tool_input: { command: 'echo \u001b]8;;http://x\u0007', n: 0 },
};
const drafts = () => [
  said('tool.before', call),
  said(
    'tool.after',
    { ...call, tool_response: null },
    {
      detached: [
        { at: '/tool_response', blake3: large.hash, bytes: 17, why: 'size' },
        { at: '/tool_input/command', blake3: secret.hash, why: 'secret', shown: 'curl -H [secret]' },
      ],
      blobs: [large, secret],
    },
  ),
];

async function shown(home: string, entry: string, options = {}): Promise<string> {
  const io = capturedIo({ home });
  await show(io, 's-1', entry, options);
  return io.lines.join('\n');
}

test('one entry whole: meaning of its class, hash, the same call, detached values; numbers and escapes as recorded', async () => {
  const data = `{"a":1.50,"b":[],"c":{},"d":"\\u0041\\n","e":[1e400,{"f":null}],"g":"\u202e"}`;
  const home = await recordedHome('s-1', [...drafts(), { ...said('event', {}), data }]);
  const before = await shown(home, '1');
  expect(before).toContain('intent: what an agent said; no proof of what ran');
  expect(before).toMatch(/same call +entry 2 {2}tool.after/);
  expect(before).toContain('echo \\u001b]8;;http://x\\u0007');
  const line = readFileSync(join(home, 'sessions/s-1/log.jsonl')).toString().split('\n')[1] ?? '';
  expect(before).toContain(hex(blake3(Buffer.from(line))));
  const after = await shown(home, '2');
  expect(after).toContain('/tool_response: size, 17 bytes; kept here');
  expect(after).toContain('shown: curl -H [secret]');
  expect(after).not.toContain('the large value');
  expect(await shown(home, '2', { detached: true })).toContain('"the large value"');
  const laidOut = (await shown(home, '3')).split('data').at(-1) ?? '';
  expect(laidOut.replace(/\s/g, '')).toBe(data.replace('\u202e', '⟦U+202E⟧'));
  expect(laidOut).toContain('"a": 1.50,\n    "b": [],\n    "c": {},\n');
});

test('a blob that is gone or is not the value is said to be', async () => {
  const home = await recordedHome('s-1', drafts());
  const blob = join(home, 'blobs', large.hash);
  chmodSync(blob, 0o600);
  writeFileSync(blob, Buffer.alloc(60));
  expect(await shown(home, '2', { detached: true })).toContain('the blob here is NOT the value the entry names');
});

test('JSON, negative numbers, raw bytes, and numbers that are none', async () => {
  const home = await recordedHome('s-1', drafts());
  const io = capturedIo({ home, isJson: true });
  await show(io, 's-1', '-1', {});
  expect(io.values[0]).toMatchObject({
    session: 's-1',
    entry: { seq: 3, class: 'recorder', kind: 'seal', data: { next: expect.any(String) as unknown } },
    related: [],
    detached: [],
  });
  expect(JSON.parse((io.values[0] as { line: string }).line)).toMatchObject({ v: 1, seq: 3 });
  const terminal = capturedIo({ home, isTerminal: true });
  await show(terminal, 's-1', '1', { raw: true });
  expect(terminal.lines[0]).toMatch(/^\{"v":1,"seq":1,/);
  for (const which of ['4', '-5', 'one', '1.0', '99999999999999999'])
    await expect(shown(home, which)).rejects.toThrow(CliError);
});

describe('export', () => {
  const asked = async (home: string, options: Parameters<typeof exportSession>[2], cwd?: string) => {
    const io = capturedIo({ home, isJson: true, ...(cwd !== undefined && { cwd }) });
    await exportSession(io, 's-1', options);
    return io.values[0];
  };

  test('a folder that can be checked without nd7', async () => {
    const home = await recordedHome('s-1', drafts());
    mkdirSync(join(home, 'sessions/s-1/receipts'), { recursive: true });
    writeFileSync(join(home, 'sessions/s-1/receipts/4.tlog-proof'), 'not really one');
    const cwd = throwAwayFolder();
    expect(await asked(home, { detached: true }, cwd)).toMatchObject({
      session: 's-1',
      path: join(cwd, 's-1'),
      receipts: 1,
      blobs: 1,
    });
    const folder = join(cwd, 's-1');
    expect(readdirSync(folder).sort()).toEqual([
      'README.txt',
      'blobs',
      'head.json',
      'log.jsonl',
      'nd7ref.py',
      'receipts',
    ]);
    expect(readFileSync(join(folder, 'log.jsonl'))).toEqual(readFileSync(join(home, 'sessions/s-1/log.jsonl')));
    expect(readdirSync(join(folder, 'blobs'))).toEqual([large.hash]);
    expect(statSync(join(folder, 'log.jsonl')).mode & 0o777).toBe(0o600);
    const readme = readFileSync(join(folder, 'README.txt'), 'utf8');
    expect(readme).toContain('1, up to 4 entries');
    const command = /python3 nd7ref.py verify .*/.exec(readme)?.[0] ?? '';
    if (python() !== '') {
      const answer = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
      expect([answer.status, answer.stdout]).toEqual([0, expect.stringContaining('intact: 4 entries')]);
    }
    await expect(asked(home, {}, cwd)).rejects.toMatchObject({ exitCode: 2 });
    expect(existsSync(folder)).toBe(true);
  }, 60_000);

  test('a tar archive holds the same bytes', async () => {
    const home = await recordedHome('s-1', drafts());
    const cwd = throwAwayFolder();
    await asked(home, { tar: 'out.tar' }, cwd);
    const listed = spawnSync('tar', ['-xf', 'out.tar'], { cwd, encoding: 'utf8' });
    expect([listed.status, listed.stderr]).toEqual([0, '']);
    expect(readFileSync(join(cwd, 's-1/log.jsonl'))).toEqual(readFileSync(join(home, 'sessions/s-1/log.jsonl')));
    expect(readdirSync(join(cwd, 's-1')).sort()).toEqual(['README.txt', 'head.json', 'log.jsonl', 'nd7ref.py']);
    await expect(asked(home, { tar: 'out.tar' }, cwd)).rejects.toMatchObject({ exitCode: 2 });
    expect(statSync(join(cwd, 'out.tar')).size).toBeGreaterThan(1024);
    await expect(asked(home, { tar: '-' }, cwd)).rejects.toMatchObject({ exitCode: 2 });
    await expect(asked(home, { tar: 'x', out: 'y' }, cwd)).rejects.toMatchObject({ exitCode: 2 });
    await expect(asked(home, { tar: 'no/such/folder.tar' }, cwd)).rejects.toThrow();
  }, 60_000);
});
