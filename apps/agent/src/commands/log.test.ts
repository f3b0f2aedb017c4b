import { appendFileSync, mkdirSync, readFileSync, writeFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { capturedIo, recordedHome, removeFolders, said } from '../testing/cli.fixture.js';
import { log, type LogOptions } from './log.js';
import { sessions } from './sessions.js';

afterAll(removeFolders);

const asked = (options: Partial<LogOptions> = {}): LogOptions => ({
  class: [],
  kind: [],
  tool: [],
  utc: true,
  ...options,
});
const bash = (command: string, more: object = {}) => ({
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  ...more,
});

async function shown(home: string, options: Partial<LogOptions> = {}, columns = 100) {
  const io = capturedIo({ home, isTerminal: true, columns });
  await log(io, undefined, asked(options));
  return io.lines;
}

const drafts = [
  said('prompt', { prompt: 'please test' }),
  said('tool.before', bash('npm test', { tool_use_id: 'toolu_1' })),
  said('tool.after', {
    ...bash('npm test'),
    tool_use_id: 'toolu_1',
    tool_response: { stdout: '\n3 passed\nmore', stderr: '' },
  }),
  said('tool.before', bash('\u001b[2J\u202ehidden\nsecond line')),
  said('tool.failed', { ...bash('false'), error: 'exit 1' }),
  said('exec', { path: '/usr/bin/make' }, { source: 'effect:linux-seccomp' }),
  said('rule.deny', { reason: 'no network' }, { source: 'decision:nd7' }),
];

test('one line an entry: number, clock, class, kind and what it is about; hostile text is boxed', async () => {
  const lines = await shown(await recordedHome('s-1', drafts));
  expect(lines[0]).toContain('not verified: nd7 verify s-1');
  expect(lines.slice(3, 11).map((line) => line.trimEnd())).toEqual([
    '2026-11-29 UTC',
    '     1  19:41:00  ┄ intent    prompt            please test',
    '     2  19:41:00  ┄ intent    tool.before       Bash npm test',
    '     3  19:41:00  ┄ intent    tool.after        Bash npm test → 3 passed',
    '     4  19:41:00  ┄ intent    tool.before       Bash ⟦ESC⟧[2J⟦U+202E⟧hidden',
    '     5  19:41:00  ┄ intent    tool.failed       Bash false → exit 1',
    '     6  19:41:00  ■ effect    exec',
    '     7  19:41:00  ◇ decision  rule.deny         no network',
  ]);
  expect(lines.some((line) => line.includes('· recorder  seal'))).toBe(true);
});

test('lines are never wider than the terminal', async () => {
  const home = await recordedHome('s-1', [
    said('prompt', { prompt: '漢字'.repeat(200) }),
    said('prompt', { prompt: 'x'.repeat(500) }),
  ]);
  for (const line of (await shown(home, { kind: ['prompt'] }, 90)).slice(2))
    expect(line.replace(/[\u4e00-\u9fff]/g, '__').length).toBeLessThanOrEqual(90);
});

test('filters, the last few, and JSON', async () => {
  const home = await recordedHome('s-1', drafts);
  expect((await shown(home, { kind: ['tool.*'], tail: 2 })).length).toBe(4);
  expect(await shown(home, { grep: 'nothing has this' })).toContain('no entry passes the filters');
  const io = capturedIo({ home, isJson: true });
  await log(io, 's-1', asked({ class: ['effect', 'decision'] }));
  expect(io.values).toEqual([
    {
      session: 's-1',
      entries: [
        expect.objectContaining({ seq: 6, class: 'effect', kind: 'exec' }),
        expect.objectContaining({ seq: 7, text: 'no network' }),
      ],
    },
  ]);
});

test('what is no entry is shown as unclassified, never as one of the classes', async () => {
  const home = await recordedHome('s-1', []);
  const file = join(home, 'sessions/s-1/log.jsonl');
  appendFileSync(
    file,
    'not json\n{"v":1,"seq":9,"prev":"x","source":"effect:x"}\n' + 'y'.repeat(2_000_000) + '\n{"torn":',
  );
  const lines = await shown(home);
  expect(lines.slice(-3).every((line) => line.includes('? unclassified'))).toBe(true);
});

test('following goes on with what is appended, until it is stopped', async () => {
  const home = await recordedHome('s-1', drafts.slice(0, 1));
  const file = join(home, 'sessions/s-1/log.jsonl');
  const stop = new AbortController();
  const io = capturedIo({ home, isJson: true });
  const following = log(io, 's-1', asked({ follow: true, kind: ['prompt'] }), stop.signal);
  const line = readFileSync(file, 'utf8').split('\n')[1] ?? '';
  appendFileSync(file, line.slice(0, 50));
  await until(() => io.values.length === 1);
  appendFileSync(file, `${line.slice(50)}\n`);
  await until(() => io.values.length === 2);
  stop.abort();
  await following;
  expect(io.values.map((entry) => entry['text'])).toEqual(['please test', 'please test']);
}, 30_000);

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('sessions: what is recorded, the last written first', async () => {
  const home = await recordedHome('s-1', drafts);
  mkdirSync(join(home, 'sessions/s-2'));
  writeFileSync(join(home, 'sessions/s-2/log.jsonl'), '');
  // The clock of a file system ticks every few milliseconds: both may bear the same time.
  const later = new Date(Date.now() + 5000);
  utimesSync(join(home, 'sessions/s-2/log.jsonl'), later, later);
  mkdirSync(join(home, 'sessions/.hidden'));
  const io = capturedIo({ home, isJson: true });
  await sessions(io, {});
  expect(io.values[0]).toMatchObject({
    total: 2,
    sessions: [
      { session: 's-2', agent: null, started: null, entries: null, bytes: 0, receipted: 0 },
      { session: 's-1', agent: 'claude-code', entries: 9, receipted: 0, continues: null },
    ],
  });
  const text = capturedIo({ home });
  await sessions(text, { limit: '1' });
  expect(text.lines.join('\n')).toMatch(/s-2[\s\S]*and 1 more/);
  const empty = capturedIo({ home: '/nonexistent/nd7' });
  await sessions(empty, {});
  expect(empty.lines.join('')).toContain('nothing is recorded');
});
