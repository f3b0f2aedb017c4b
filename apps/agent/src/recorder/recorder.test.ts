// A session from its first payload to its end, and what a recorder tells of it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  clientWithHook,
  entriesOf,
  inProcess,
  killStarted,
  kindsOf,
  removeThrowAways,
  say,
  sessionsOf,
  throwAway,
  toolCall,
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

const kinds = (session: string) => kindsOf(home, session);

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
    await say(recorder, toolCall('s', 't1'), { CLAUDE_PID: String(client.pid) }, hook);
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
    await say(recorder, toolCall('s', 't1'), {}, hook);
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
    await say(recorder, toolCall('Session', 't1'));
    await say(recorder, toolCall('session', 't2'));
    await recorder.stop();
    expect(sessionsOf(home)).toEqual(['Session', expect.stringMatching(/^unnamed-/)]);
    expect(entriesOf(home, sessionsOf(home)[1] ?? '')[1]?.peer).toMatchObject({
      session_claimed: 'session',
      session_from: 'recorder',
    });
  });

  it('has copies marked, not dropped, also those that come at the same moment', async () => {
    const twice = toolCall('s', 't1');
    await Promise.all([say(recorder, twice), say(recorder, twice), say(recorder, toolCall('s', 't2'))]);
    await recorder.stop();
    const calls = entriesOf(home, 's').filter((entry) => entry.kind === 'tool.before');
    expect(calls).toHaveLength(3);
    const copies = calls.filter((entry) => (entry.peer as { duplicate_of?: number }).duplicate_of !== undefined);
    expect(copies).toHaveLength(1);
    const original = calls.find((entry) => entry.seq === (copies[0]?.peer as { duplicate_of: number }).duplicate_of);
    expect(original?.data).toBe(copies[0]?.data);
  });

  it('has copies marked of what came before this recorder, or past it', async () => {
    const said = toolCall('s', 't1', 'export TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz');
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
    await Promise.all(Array.from({ length: 300 }, (_, n) => say(recorder, toolCall('s', `t${n}`))));
    await recorder.stop();
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'tool.before')).toHaveLength(300);
    expect(entriesOf(home, 's').filter((entry) => entry.kind === 'seal').length).toBeGreaterThanOrEqual(2);
  });
});

describe('operations', () => {
  it('tell what is open, refuse what they do not know', async () => {
    await say(recorder, toolCall('s', 't1'));
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
