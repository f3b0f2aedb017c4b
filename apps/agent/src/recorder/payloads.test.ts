// What is made of payloads: those of the real client, and those that nobody would send.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { python, referenceVerdict } from '@nd7/testing';
import {
  CAPTURES,
  entriesOf,
  inProcess,
  killStarted,
  removeThrowAways,
  REPOSITORY,
  say,
  sessionsOf,
  throwAway,
  toolCall,
  verdictOf,
} from '../testing/recorder.fixture.js';
import type { Recorder } from './recorder.js';

let home: string;
let recorder: Recorder & { warnings: string[] };
beforeEach(() => {
  home = join(throwAway(), 'home');
  recorder = inProcess(home, { lookMs: 50 });
});
afterEach(async () => {
  killStarted();
  await recorder.stop();
  removeThrowAways();
});

describe('captured sessions', () => {
  it('of the real client become intact chains that say exactly what was said', async () => {
    const said = new Map<string, string[]>();
    for (const name of readdirSync(CAPTURES).sort()) {
      const bytes = readFileSync(join(CAPTURES, name));
      const { session_id: session } = JSON.parse(bytes.toString()) as { session_id: string };
      expect(await say(recorder, bytes)).toEqual({ exit: 0, stdout: '', stderr: '' });
      said.set(session, [...(said.get(session) ?? []), bytes.toString().trim()]);
    }
    await recorder.stop();
    expect(sessionsOf(home)).toEqual([...said.keys()].sort());
    for (const [session, payloads] of said) {
      expect(await verdictOf(home, session)).toMatchObject({ verdict: 'intact' });
      const intents = entriesOf(home, session).filter((entry) => entry.class === 'intent');
      expect(intents).toHaveLength(payloads.length);
      intents.forEach((entry, at) => {
        if (entry.detached === undefined) expect(entry.data).toBe(payloads[at]);
        expect(entry.producer).toBe('claude-code');
        expect(entry.problem).toBeUndefined();
      });
    }
  }, 120_000);

  (python() !== '' ? it : it.skip)('agree with the independent reading (python3)', async () => {
    await say(recorder, readFileSync(join(CAPTURES, readdirSync(CAPTURES)[0] ?? '')));
    await recorder.stop();
    const [session = ''] = sessionsOf(home);
    expect(referenceVerdict(session, join(home, 'sessions', session))).toMatchObject({ verdict: 'intact' });
  });
});

describe('hostile payloads', () => {
  it('are recorded, every one, and break nothing', async () => {
    const folder = join(REPOSITORY, 'tests/hostile/edge');
    for (const name of readdirSync(folder))
      expect(await say(recorder, readFileSync(join(folder, name)), { CLAUDE_CODE_SESSION_ID: 'fallback' })).toEqual({
        exit: 0,
        stdout: '',
        stderr: '',
      });
    await say(recorder, new Uint8Array());
    await say(recorder, Buffer.alloc(3_000_000, '['));
    await recorder.stop();
    const all = sessionsOf(home);
    expect(all).toEqual(
      expect.arrayContaining([
        '7f3c9a52-4b1e-4d0a-9c66-1e2f8a7b5d31',
        'fallback',
        expect.stringMatching(/^unnamed-claude-code-/),
      ]),
    );
    for (const session of all) expect(await verdictOf(home, session)).toMatchObject({ verdict: 'intact' });
    const count = all.flatMap((session) => entriesOf(home, session)).filter((entry) => entry.class === 'intent').length;
    expect(count).toBe(readdirSync(folder).length + 2);
    expect(readdirSync(home)).not.toContain('etc');
  });

  it('larger than a line are detached and stay readable', async () => {
    const content = 'x'.repeat(3_000_000);
    await say(recorder, {
      session_id: 's',
      hook_event_name: 'PostToolUse',
      tool_name: 'Write',
      tool_input: { file_path: '/a', content },
    });
    await recorder.stop();
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
    const entry = entriesOf(home, 's').find((one) => one.kind === 'tool.after');
    expect(entry?.detached).toMatchObject([{ at: '/tool_input/content', why: 'size', bytes: 3_000_002 }]);
    expect(JSON.parse(entry?.data ?? '')).toMatchObject({ tool_input: { file_path: '/a', content: null } });
    expect(readdirSync(join(home, 'blobs'))).toEqual([entry?.detached?.[0]?.blake3]);
  });

  it('with secrets never put them into a log, raw bytes included', async () => {
    const token = `ghp_${'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2'}`;
    await say(recorder, toolCall('s', 't1', `curl -H "Authorization: Bearer ${token}" https://example.org`));
    await say(recorder, `{"session_id":"s","hook_event_name":"PreToolUse","x":"${token}`, {
      CLAUDE_CODE_SESSION_ID: 's',
    });
    await say(recorder, { session_id: 's', hook_event_name: 'Stop', last_assistant_message: `the token is ${token}.` });
    await recorder.stop();
    const log = readFileSync(join(home, 'sessions/s/log.jsonl'), 'utf8');
    expect(log).not.toContain(token);
    expect(log).not.toContain(Buffer.from(token).toString('base64').slice(4, 30));
    const raw = entriesOf(home, 's').find((entry) => entry.data?.includes('raw_base64'));
    expect(JSON.parse(raw?.data ?? '')).toMatchObject({ raw_base64: null });
    const before = entriesOf(home, 's').find((entry) => entry.kind === 'tool.before');
    expect(before?.detached?.[0]?.shown).toContain('[secret]');
    // A recorder that begins later finds the same secret again.
    const later = inProcess(home);
    await say(later, { session_id: 's', hook_event_name: 'Notification', message: `again ${token}` });
    await later.stop();
    expect(readFileSync(join(home, 'sessions/s/log.jsonl'), 'utf8')).not.toContain(token);
  });
});
