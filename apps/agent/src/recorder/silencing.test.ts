// An agent that switches its hooks off, or makes calls that they do not tell of.
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import {
  clientWithHook,
  entriesOf,
  inProcess,
  killStarted,
  kindsOf,
  removeThrowAways,
  say,
  throwAway,
  toolCall,
  until,
} from '../testing/recorder.fixture.js';
import type { Recorder } from './recorder.js';
import { usualSettingsFolders } from './settings-paths.js';

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
    await say(recorder, toolCall('s', 't1'), { CLAUDE_PROJECT_DIR: folder });
    writeFileSync(join(folder, '.claude', 'settings.local.json'), '{"disableAllHooks": true}');
    await until('the alarm', () => kinds('s').includes('recorder alarm'));
    expect(JSON.parse(entriesOf(home, 's').find((entry) => entry.kind === 'alarm')?.data ?? '')).toMatchObject({
      reason: 'silencing',
      file: join(folder, '.claude', 'settings.local.json'),
    });
  });

  it('is noticed in every folder of user settings that its hooks have named, and in the usual one all the same', async () => {
    const [first, second] = [project(), project()];
    const file = (folder: string) => join(folder, 'settings.json');
    for (const folder of [first, second]) {
      writeFileSync(file(folder), '{}');
      await say(recorder, toolCall('s', 't1'), { CLAUDE_CONFIG_DIR: folder });
    }
    await say(recorder, toolCall('s', 't2'), { CLAUDE_CONFIG_DIR: 'relative' });
    const seen = recorder.looks;
    await until('a look', () => recorder.looks > seen + 1);
    expect(kinds('s')).not.toContain('recorder alarm');
    for (const folder of [first, second]) writeFileSync(file(folder), '{"disableAllHooks": true}');
    const alarms = () => entriesOf(home, 's').filter(({ kind }) => kind === 'alarm');
    await until('both alarms', () => alarms().length === 2);
    expect(alarms().map(({ data }) => (JSON.parse(data ?? '') as { file: string }).file)).toEqual([
      file(first),
      file(second),
    ]);
    // Whatever environment the hook had that started a recorder.
    expect(usualSettingsFolders({ HOME: first })).toEqual([
      join(userInfo().homedir, '.claude'),
      join(first, '.claude'),
    ]);
  });

  it('is told at the latest when the session is over', async () => {
    const { client, hook } = await clientWithHook();
    const transcript = join(throwAway(), 't.jsonl');
    await say(recorder, { ...toolCall('s', 'told'), transcript_path: transcript }, {}, hook);
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
    await say(recorder, { ...toolCall('s', 'told'), transcript_path: transcript });
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
