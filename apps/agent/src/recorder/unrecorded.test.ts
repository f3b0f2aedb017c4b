import { mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  entriesOf,
  inProcess,
  killStarted,
  kindsOf,
  removeThrowAways,
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

const configure = (value: object) => writeFileSync(join(home, 'config.json'), JSON.stringify(value));
const kinds = (session: string) => kindsOf(home, session);

describe('what cannot be recorded', () => {
  const breakHome = () => {
    // A file where the session's folder should be: works for root too.
    mkdirSync(join(home, 'sessions'), { recursive: true });
    writeFileSync(join(home, 'sessions', 's'), '');
  };

  it('is let go by best-effort and told as a gap as soon as it can', async () => {
    breakHome();
    expect(await say(recorder, toolCall('s', 't1'))).toEqual({ exit: 0, stdout: '', stderr: '' });
    expect(await say(recorder, { session_id: 's', hook_event_name: 'Stop' })).toMatchObject({ exit: 0 });
    rmSync(join(home, 'sessions', 's'));
    await say(recorder, toolCall('s', 't2'));
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
    const answer = await say(recorder, toolCall('s', 't1'));
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
    expect((await say(recorder, toolCall('s', 't1'))).stdout).toContain('is not JSON');
  });

  it('because the log was cut is recorded after recovery, with an alarm', async () => {
    await say(recorder, toolCall('s', 't1'));
    await say(recorder, toolCall('s', 't2'));
    const log = join(home, 'sessions/s/log.jsonl');
    truncateSync(log, statSync(log).size - 30);
    expect(await say(recorder, toolCall('s', 't3'))).toMatchObject({ exit: 0 });
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
