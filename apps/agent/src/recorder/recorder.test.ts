import { readdirSync, readFileSync, writeFileSync, mkdirSync, realpathSync } from 'node:fs';
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
  start,
  throwAway,
  until,
  verdictOf,
} from '../testing/recorder.fixture.js';
import { recordAlone } from './alone.js';
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

const configure = (value: object) => writeFileSync(join(home, 'config.json'), JSON.stringify(value));
const pre = (session: string, id: string, command = 'ls') => ({
  session_id: session,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id: id,
});
const kinds = (session: string) => entriesOf(home, session).map(({ kind, class: c }) => `${c} ${kind}`);

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
    await say(recorder, pre('s', 't1', `curl -H "Authorization: Bearer ${token}" https://example.org`));
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

describe('a session', () => {
  it('ends with the client’s word, a recorder’s end and a seal', async () => {
    await say(recorder, { session_id: 's', hook_event_name: 'SessionStart', source: 'startup' });
    await say(recorder, { session_id: 's', hook_event_name: 'SessionEnd', reason: 'other' });
    await recorder.stop();
    expect(kinds('s')).toEqual([
      'recorder session.start',
      'intent session.start',
      'intent session.end',
      'recorder session.end',
      'recorder seal',
    ]);
    expect(JSON.parse(entriesOf(home, 's')[3]?.data ?? '')).toEqual({ reason: 'client ended', client_reason: 'other' });
    expect(readdirSync(join(home, 'run', 'open'))).toEqual([]);
  });

  it('is ended and sealed when its client has gone without a word', async () => {
    const { client, hook } = await clientWithHook();
    await say(recorder, pre('s', 't1'), { CLAUDE_PID: String(client.pid) }, hook);
    const peer = entriesOf(home, 's')[1]?.peer as { pid: number; start: string; uid: number; client: { pid: number } };
    expect(peer).toMatchObject({
      pid: hook,
      start: expect.stringMatching(/^\d+$/) as string,
      uid: process.getuid?.(),
      client: { pid: client.pid },
    });
    client.kill('SIGKILL');
    await until('the recorder notices', () => kinds('s').at(-1) === 'recorder seal');
    expect(kinds('s')).toEqual([
      'recorder session.start',
      'intent tool.before',
      'recorder session.end',
      'recorder seal',
    ]);
    expect(JSON.parse(entriesOf(home, 's')[2]?.data ?? '')).toMatchObject({
      reason: 'process gone',
      client: { pid: client.pid },
    });
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  });

  it('whose recorder died is taken up by the next one, ended when the client is gone by then', async () => {
    const { client, hook } = await clientWithHook();
    await say(recorder, pre('s', 't1'), {}, hook);
    await until('the mark names the client', () => readFileSync(join(home, 'run/open/s'), 'utf8').includes('pid'));
    client.kill('SIGKILL');
    await until('the client is gone', () => client.signalCode !== null);
    const second = inProcess(home); // the first one is as good as dead: nobody asks it again
    await second.recover();
    expect(kinds('s')).toContain('recorder session.resume');
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'session.end')).not.toHaveLength(0);
    await second.stop();
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  });

  it('that is resumed goes on in the same log', async () => {
    await say(recorder, { session_id: 's', hook_event_name: 'SessionStart', source: 'startup' });
    await say(recorder, { session_id: 's', hook_event_name: 'SessionEnd' });
    await recorder.stop();
    recorder = inProcess(home);
    await say(recorder, { session_id: 's', hook_event_name: 'SessionStart', source: 'resume' });
    await recorder.stop();
    expect(kinds('s').slice(-3)).toEqual(['recorder session.resume', 'intent session.resume', 'recorder seal']);
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  });

  it('whose id differs from another only by case goes to the session of unnamed payloads', async () => {
    await say(recorder, pre('Session', 't1'));
    await say(recorder, pre('session', 't2'));
    await recorder.stop();
    expect(sessionsOf(home)).toEqual(['Session', expect.stringMatching(/^unnamed-/)]);
    expect(entriesOf(home, sessionsOf(home)[1] ?? '')[1]?.peer).toMatchObject({
      session_claimed: 'session',
      session_from: 'recorder',
    });
  });

  it('has copies marked, not dropped, also those that come at the same moment', async () => {
    const twice = pre('s', 't1');
    await Promise.all([say(recorder, twice), say(recorder, twice), say(recorder, pre('s', 't2'))]);
    await recorder.stop();
    const calls = entriesOf(home, 's').filter((entry) => entry.kind === 'tool.before');
    expect(calls).toHaveLength(3);
    const copies = calls.filter((entry) => (entry.peer as { duplicate_of?: number }).duplicate_of !== undefined);
    expect(copies).toHaveLength(1);
    const original = calls.find((entry) => entry.seq === (copies[0]?.peer as { duplicate_of: number }).duplicate_of);
    expect(original?.data).toBe(copies[0]?.data);
  });

  it('has copies marked of what came before this recorder, or past it', async () => {
    const said = pre('s', 't1', 'export TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz');
    await recordAlone({
      home,
      agent: 'claude-code',
      env: {},
      payload: Buffer.from(JSON.stringify(said)),
      took: 'eof',
      startRecorder: false,
    });
    const original = entriesOf(home, 's')[1];
    await recorder.stop();
    const at = Date.parse(original?.time ?? '');
    recorder = inProcess(home, { lookMs: 50, clock: { now: () => at + 1_900 } });
    await say(recorder, said);
    await say(recorder, { ...said, tool_use_id: 't2' });
    const [copy, other] = entriesOf(home, 's').slice(-2);
    expect(copy?.peer).toMatchObject({ duplicate_of: original?.seq });
    expect(copy?.detached).toHaveLength(1);
    expect(other?.peer).not.toHaveProperty('duplicate_of');
  });

  it('takes parallel payloads in one chain', async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => say(recorder, pre('s', `t${n}`))));
    await recorder.stop();
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'tool.before')).toHaveLength(300);
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'seal').length).toBeGreaterThanOrEqual(2);
  });
});

describe('silencing', () => {
  const project = () => realpathSync(throwAway());
  const change = (file: string) => ({
    session_id: 's',
    hook_event_name: 'ConfigChange',
    source: 'project_settings',
    file_path: file,
  });

  it('is refused where recording is required, and an alarm', async () => {
    configure({ recording: 'required' });
    const file = join(project(), 'settings.json');
    writeFileSync(file, '{ "disableAllHooks": true }');
    const answer = await say(recorder, change(file));
    expect(answer).toMatchObject({ exit: 2, stdout: '', stderr: expect.stringContaining('disableAllHooks') as string });
    await recorder.stop();
    expect(kinds('s').slice(1, 3)).toEqual(['intent config.change', 'recorder alarm']);
    expect(JSON.parse(entriesOf(home, 's')[2]?.data ?? '')).toEqual({
      reason: 'silencing refused',
      how: 'disable-all-hooks',
      file,
    });
  });

  it('is let through and an alarm where recording is best-effort; other changes are neither', async () => {
    const file = join(project(), 'settings.json');
    writeFileSync(file, '{ "disableAllHooks": true }');
    expect(await say(recorder, change(file))).toMatchObject({ exit: 0 });
    writeFileSync(file, '{ "disableAllHooks": false, "model": "x" }');
    expect(await say(recorder, change(file))).toMatchObject({ exit: 0 });
    await recorder.stop();
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'alarm')).toHaveLength(1);
  });

  it('without a word of the client is noticed on the disk', async () => {
    const folder = project();
    mkdirSync(join(folder, '.claude'));
    await say(recorder, pre('s', 't1'), { CLAUDE_PROJECT_DIR: folder });
    writeFileSync(join(folder, '.claude', 'settings.local.json'), '{"disableAllHooks": true}');
    await until('the alarm', () => kinds('s').includes('recorder alarm'));
    expect(JSON.parse(entriesOf(home, 's').find((entry) => entry.kind === 'alarm')?.data ?? '')).toMatchObject({
      reason: 'silencing',
      file: join(folder, '.claude', 'settings.local.json'),
    });
  });

  it('is told at the latest when the session is over', async () => {
    const { client, hook } = await clientWithHook();
    const transcript = join(throwAway(), 't.jsonl');
    await say(recorder, { ...pre('s', 'told'), transcript_path: transcript }, {}, hook);
    const call = (id: string) => `${JSON.stringify({ message: { content: [{ type: 'tool_use', id }] } })}\n`;
    writeFileSync(transcript, call('told') + call('silent'));
    client.kill('SIGKILL');
    await until('the session is sealed', () => kinds('s').at(-1) === 'recorder seal');
    expect(kinds('s').slice(1)).toEqual([
      'intent tool.before',
      'recorder alarm',
      'recorder session.end',
      'recorder seal',
    ]);
    expect(JSON.parse(entriesOf(home, 's')[2]?.data ?? '')).toMatchObject({ tool_use_ids: ['silent'] });
  });

  it('is noticed by calls in the transcript that no hook told of', async () => {
    const now = { ms: Date.now() };
    await recorder.stop();
    recorder = inProcess(home, { lookMs: 20, clock: { now: () => now.ms } });
    const transcript = join(throwAway(), 't.jsonl');
    const line = (id: string) =>
      `${JSON.stringify({
        type: 'assistant',
        message: {
          role: 'assistant',
          content: [
            { type: 'text', text: 'ü' },
            { type: 'tool_use', id, name: 'Bash', input: {} },
          ],
        },
      })}\n`;
    writeFileSync(transcript, line('old'));
    await say(recorder, { ...pre('s', 'told'), transcript_path: transcript });
    await until('the first look', () => recorder.looks > 1);
    writeFileSync(transcript, line('old') + line('told') + line('silent'));
    await until('the second look', () => recorder.looks > 3);
    expect(kinds('s')).not.toContain('recorder alarm');
    now.ms += 20_000;
    await until('the alarm', () => kinds('s').includes('recorder alarm'));
    const alarms = entriesOf(home, 's').filter((entry) => entry.kind === 'alarm');
    expect(JSON.parse(alarms[0]?.data ?? '')).toMatchObject({
      reason: 'hooks silent',
      tool_use_ids: ['silent'],
      calls: 1,
    });
    const seen = recorder.looks;
    await until('more looks', () => recorder.looks > seen + 3);
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'alarm')).toHaveLength(1);
  });
});

describe('what cannot be recorded', () => {
  const breakHome = () => {
    // A file where the session's folder should be: works for root too.
    mkdirSync(join(home, 'sessions'), { recursive: true });
    writeFileSync(join(home, 'sessions', 's'), '');
  };

  it('is let go by best-effort and told as a gap as soon as it can', async () => {
    breakHome();
    expect(await say(recorder, pre('s', 't1'))).toEqual({ exit: 0, stdout: '', stderr: '' });
    expect(await say(recorder, { session_id: 's', hook_event_name: 'Stop' })).toMatchObject({ exit: 0 });
    const { rmSync } = await import('node:fs');
    rmSync(join(home, 'sessions', 's'));
    await say(recorder, pre('s', 't2'));
    await recorder.stop();
    expect(kinds('s').slice(0, 3)).toEqual(['recorder session.start', 'recorder gap', 'intent tool.before']);
    expect(JSON.parse(entriesOf(home, 's')[1]?.data ?? '')).toMatchObject({
      entries: 2,
      kinds: { 'tool.before': 1, 'turn.end': 1 },
      reason: expect.any(String) as string,
    });
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  });

  it('is denied where recording is required, saying why and what to do', async () => {
    configure({ recording: 'required' });
    breakHome();
    const answer = await say(recorder, pre('s', 't1'));
    const { hookSpecificOutput } = JSON.parse(answer.stdout) as { hookSpecificOutput: Record<string, string> };
    expect(hookSpecificOutput).toMatchObject({
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: expect.stringMatching(/could not record.*nd7 doctor/s) as string,
    });
    expect(await say(recorder, { session_id: 's', hook_event_name: 'PostToolUse' })).toEqual({
      exit: 0,
      stdout: '',
      stderr: '',
    });
  });

  it('is denied too while config.json cannot be read: a broken file must not loosen it', async () => {
    writeFileSync(join(home, 'config.json'), '{ recording: ');
    breakHome();
    expect((await say(recorder, pre('s', 't1'))).stdout).toContain('is not JSON');
  });

  it('because the log was cut is recorded after recovery, with an alarm', async () => {
    await say(recorder, pre('s', 't1'));
    await say(recorder, pre('s', 't2'));
    const log = join(home, 'sessions/s/log.jsonl');
    const { truncateSync, statSync } = await import('node:fs');
    truncateSync(log, statSync(log).size - 30);
    expect(await say(recorder, pre('s', 't3'))).toMatchObject({ exit: 0 });
    await recorder.stop();
    const ids = sessionsOf(home)
      .flatMap((session) => entriesOf(home, session))
      .map((entry) => entry.data ?? '');
    expect(ids.some((data) => data.includes('"t3"'))).toBe(true);
    const alarms = sessionsOf(home).flatMap((session) =>
      entriesOf(home, session).filter(({ kind }) => kind === 'alarm'),
    );
    expect(alarms.map(({ data }) => JSON.parse(data ?? '') as unknown)).toEqual([
      { reason: 'log changed', detail: expect.stringContaining('was cut from') as string },
    ]);
  });
});

describe('operations', () => {
  it('tell what is open, refuse what they do not know', async () => {
    await say(recorder, pre('s', 't1'));
    const status = JSON.parse(
      (await recorder.answer({ op: 'status', meta: new Map(), payload: Buffer.alloc(0) }, { pid: 1, uid: 0, gid: 0 }))
        .stdout,
    ) as { sessions: unknown[]; pid: number };
    expect(status).toMatchObject({
      pid: process.pid,
      recording: 'best-effort',
      sessions: [{ session: 's', agent: 'claude-code', entries: 2, ended: false }],
      ship: null,
    });
    expect(
      await recorder.answer({ op: 'dance', meta: new Map(), payload: Buffer.alloc(0) }, { pid: 1, uid: 0, gid: 0 }),
    ).toMatchObject({ exit: 2 });
    expect(
      await recorder.answer({ op: 'ship', meta: new Map(), payload: Buffer.alloc(0) }, { pid: 1, uid: 0, gid: 0 }),
    ).toMatchObject({ exit: 1 });
  });
});

/** A shell that stands for the client, and the pid of a child of it that stands for the hook. */
async function clientWithHook(): Promise<{ client: ReturnType<typeof start>; hook: number }> {
  const client = start('sh', ['-c', 'sleep 1000 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const hook = Number(
    await new Promise<string>((resolve) => client.stdout?.once('data', (data: Buffer) => resolve(data.toString()))),
  );
  orphans.push(hook);
  return { client, hook };
}
const orphans: number[] = [];
afterEach(() => {
  for (const pid of orphans.splice(0))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // gone already
    }
});
