// What the real client did stands in the log, and nothing else does.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callsIn, findClient, has, sessionIn, until, VERSION, World } from './claude.fixture.js';
import type { Entry } from './claude.fixture.js';

const client = findClient();
const why = 'problem' in client ? ` (${client.problem})` : '';
const withClient = 'path' in client ? describe : describe.skip;
const path = 'path' in client ? client.path : '';

let world: World;
afterEach(async () => {
  await world.end();
});

const intents = (entries: readonly Entry[]) => entries.filter(({ source }) => source === 'intent:claude-code');
const events = (entries: readonly Entry[]) => intents(entries).map(({ data }) => data['hook_event_name'] as string);
const of = (entries: readonly Entry[], kind: string) => entries.filter((entry) => entry.kind === kind);
const callOf = ({ data }: Entry) => data['tool_use_id'] as string;
/** Ids that a batch resolved: calls that failed before they ran stand nowhere else. */
const batched = (entries: readonly Entry[]) =>
  of(entries, 'tool.batch').flatMap(({ data }) =>
    (data['tool_calls'] as { tool_use_id: string }[]).map((call) => call.tool_use_id),
  );

const lines = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** Runs a scenario headless with nd7 attached, waits until the recorder has closed the session, and holds the log against the output. */
async function recorded(
  scenario: string,
  options: { scenarios?: Record<string, unknown>; config?: object; args?: string[] } = {},
) {
  world = await World.make(path, options.scenarios);
  world.nd7('init', '--yes');
  if (options.config !== undefined) writeFileSync(join(world.nd7Home, 'config.json'), JSON.stringify(options.config));
  const output = await world.run(`[[scenario:${scenario}]] go`, options.args);
  const session = sessionIn(output);
  await until(
    'the session is sealed',
    () => of(world.entries(session), 'session.end').length >= 2 && world.entries(session).at(-1)?.kind === 'seal',
  );
  const entries = world.entries(session);
  expect(world.sessions()).toEqual([session]);
  expect(world.verdict(session)).toMatchObject({ verdict: 'intact', entries: entries.length });
  for (const entry of intents(entries)) expect(entry.data['session_id']).toBe(session);
  return { output, session, entries, calls: callsIn(output) };
}

withClient(`Claude Code ${VERSION}, headless${why}`, () => {
  it('a session of edits: every event, every call before and after, from start to seal', async () => {
    const { entries, calls, output } = await recorded('basic');
    expect(entries[0]).toMatchObject({
      source: 'recorder:nd7',
      kind: 'session.start',
      data: { agent: 'claude-code', cwd: world.project },
    });
    expect(events(entries)).toEqual(
      expect.arrayContaining([
        'SessionStart',
        'InstructionsLoaded',
        'UserPromptSubmit',
        'PreToolUse',
        'PostToolUse',
        'PostToolBatch',
        'Stop',
        'SessionEnd',
      ]),
    );
    expect(events(entries)).not.toContain('MessageDisplay');
    expect(of(entries, 'prompt')[0]?.data['prompt']).toBe('[[scenario:basic]] go');
    expect(calls.map(({ name }) => name)).toEqual(['Bash', 'Write', 'Read', 'Edit']);
    expect(of(entries, 'tool.before').map(callOf)).toEqual(calls.map(({ id }) => id));
    expect(of(entries, 'tool.after').map(callOf)).toEqual(calls.map(({ id }) => id));
    of(entries, 'tool.before').forEach(({ data }, at) =>
      expect(data).toMatchObject({ tool_name: calls[at]?.name, tool_input: calls[at]?.input }),
    );
    const result = output.find((line) => line['type'] === 'result');
    expect(of(entries, 'turn.end').at(-1)?.data['last_assistant_message']).toBe(result?.['result']);
    for (const entry of intents(entries))
      expect(entry.peer).toMatchObject({
        pid: expect.any(Number) as number,
        start: expect.any(String) as string,
        client: { pid: expect.any(Number) as number },
      });
    expect(new Set(intents(entries).map(({ peer }) => (peer?.['client'] as { pid: number }).pid)).size).toBe(1);
    expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
  });

  it('parallel calls: each once before and once after, in one chain', async () => {
    const { entries, calls } = await recorded('parallel');
    const ids = calls.map(({ id }) => id).sort();
    expect(ids).toHaveLength(4);
    expect(of(entries, 'tool.before').map(callOf).sort()).toEqual(ids);
    expect([...of(entries, 'tool.after'), ...of(entries, 'tool.failed')].map(callOf).sort()).toEqual(ids);
    for (const id of ids) {
      const at = (kind: string) => entries.find((entry) => entry.kind === kind && callOf(entry) === id)?.seq ?? -1;
      expect(at('tool.before')).toBeLessThan(Math.max(at('tool.after'), at('tool.failed')));
    }
  });

  it('failing calls: also those that never ran stand in the log', async () => {
    const { entries, calls } = await recorded('failing');
    const failed = of(entries, 'tool.failed');
    expect(failed.find(({ data }) => String(data['error']).startsWith('Exit code 3'))).toBeDefined();
    // Unknown tools and bad arguments fire neither before nor failed: the batch is the only place.
    const told = new Set([...of(entries, 'tool.before').map(callOf), ...batched(entries)]);
    expect(calls.map(({ id }) => id).filter((id) => !told.has(id))).toEqual([]);
    expect(of(entries, 'tool.before').length).toBeLessThan(calls.length);
  });

  it('unicode, NUL and bytes that are no text: the log says what the client said', async () => {
    const { entries, calls } = await recorded('unicode');
    of(entries, 'tool.before').forEach(({ data }, at) => expect(data['tool_input']).toEqual(calls[at]?.input));
    const log = readFileSync(join(world.nd7Home, 'sessions', world.sessions()[0] ?? '', 'log.jsonl'), 'utf8');
    expect(log).toContain('世界');
    expect(log).toContain('🚀');
    expect(of(entries, 'tool.after')[0]?.data['tool_response']).toMatchObject({
      stdout: expect.stringContaining('nul\0byte') as string,
    });
    expect(existsSync(join(world.project, 'src/ünï 世.txt'))).toBe(true);
  });

  it('big output: recorded as far as the client tells it', async () => {
    const { entries } = await recorded('big');
    const [first] = of(entries, 'tool.after');
    expect(first?.data['tool_response']).toMatchObject({ persistedOutputSize: expect.any(Number) as number });
    const line = readFileSync(join(world.nd7Home, 'sessions', world.sessions()[0] ?? '', 'log.jsonl')).indexOf(10);
    expect(line).toBeGreaterThan(0);
  });

  it('a large file written: detached, its hash in the chain', async () => {
    const content = 'x'.repeat(200_000);
    // One path for both: the scenario's ${CWD} is the model's own folder.
    const { entries } = await recorded('large', {
      scenarios: {
        large: {
          steps: [{ calls: [{ tool: 'Write', input: { file_path: '${CWD}/large.txt', content } }] }, { text: 'Done.' }],
        },
      },
    });
    const [before] = of(entries, 'tool.before');
    expect(before?.data).toMatchObject({ tool_name: 'Write', tool_input: { content: null } });
    expect(before?.detached).toMatchObject([{ at: '/tool_input/content', why: 'size', bytes: content.length + 2 }]);
  });

  it('a subagent: its calls bear its id, its beginning and end are there', async () => {
    const { entries } = await recorded('subagent');
    await until('the subagent has ended', () => of(world.entries(world.sessions()[0] ?? ''), 'agent.stop').length > 0);
    const [started] = of(entries, 'agent.start');
    const agent = started?.data['agent_id'] as string;
    expect(agent).toMatch(/\S+/);
    const own = intents(entries).filter(({ data }) => data['agent_id'] === agent);
    expect(own.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['agent.start', 'tool.before', 'tool.after']));
    expect(own.find(({ kind }) => kind === 'tool.before')?.data['tool_input']).toMatchObject({
      command: 'echo from-subagent',
    });
  });

  it('resumed: goes on in the same log', async () => {
    const { session } = await recorded('talk');
    const output = await world.run('[[scenario:one]] go', ['--resume', session]);
    expect(sessionIn(output)).toBe(session);
    await until(
      'sealed again',
      () => of(world.entries(session), 'session.end').length >= 4 && world.entries(session).at(-1)?.kind === 'seal',
    );
    expect(world.entries(session).map(({ source, kind }) => `${source} ${kind}`)).toEqual(
      expect.arrayContaining(['intent:claude-code session.resume']),
    );
    expect(world.sessions()).toEqual([session]);
    expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
  });

  it('killed with SIGKILL in the middle of a call: the log gets its end all the same', async () => {
    world = await World.make(path, {
      slow: {
        steps: [
          { calls: [{ tool: 'Bash', input: { command: 'echo begun; sleep 600', description: 'slow' } }] },
          { text: 'Done.' },
        ],
      },
    });
    world.nd7('init', '--yes');
    const { child } = world.start('[[scenario:slow]] go');
    await until('the call has begun', () =>
      world.sessions().some((session) => of(world.entries(session), 'tool.before').length === 1),
    );
    const [session = ''] = world.sessions();
    child.kill('SIGKILL');
    await until(
      'the recorder notices',
      () => world.entries(session).at(-1)?.kind === 'seal' && of(world.entries(session), 'session.end').length === 1,
    );
    expect(of(world.entries(session), 'session.end')[0]).toMatchObject({
      source: 'recorder:nd7',
      data: { reason: 'process gone', client: { pid: child.pid } },
    });
    expect(events(world.entries(session))).not.toContain('SessionEnd');
    expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
    spawnSync('sh', [
      '-c',
      `for p in /proc/[0-9]*; do [ "$(readlink $p/cwd 2>/dev/null)" = "${world.project}" ] && kill -9 "\${p#/proc/}"; done; true`,
    ]);
  });

  it('a recorder killed in mid-session: the next hook starts another, the chain goes on', async () => {
    world = await World.make(path, {
      pair: {
        steps: [
          {
            calls: [
              {
                tool: 'Bash',
                input: { command: 'kill -9 "$(cat "$HOME/.nd7/run/recorder.lock")"; echo killed', description: 'k' },
              },
            ],
          },
          { calls: [{ tool: 'Bash', input: { command: 'echo after', description: 'a' } }] },
          { text: 'Done.' },
        ],
      },
    });
    world.nd7('init', '--yes');
    const output = await world.run('[[scenario:pair]] go');
    const session = sessionIn(output);
    await until(
      'sealed',
      () => world.entries(session).at(-1)?.kind === 'seal' && events(world.entries(session)).includes('SessionEnd'),
    );
    const entries = world.entries(session);
    expect(of(entries, 'tool.before').map(callOf)).toEqual(callsIn(output).map(({ id }) => id));
    expect(of(entries, 'tool.after').map(callOf)).toEqual(callsIn(output).map(({ id }) => id));
    expect(of(entries, 'session.resume')).not.toHaveLength(0);
    expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
  });
});

/** What the client itself would not refuse: a program of the agent's writes the file. */
const WRITE = `node -e "require('fs').writeFileSync('.claude/settings.json', JSON.stringify({ disableAllHooks: true }))"; sleep 4; echo written`;
const bash = (command: string) => ({ calls: [{ tool: 'Bash', input: { command, description: 'step' } }] });
const silencing = {
  silence: { steps: [bash('echo first'), bash(WRITE), bash('echo third'), bash('echo fourth'), { text: 'Done.' }] },
};

withClient(`an agent that writes disableAllHooks in mid-session${why}`, () => {
  it('is refused where recording is required: every call stands in the log', async () => {
    const { entries, calls } = await recorded('silence', { scenarios: silencing, config: { recording: 'required' } });
    expect(calls).toHaveLength(4);
    expect(of(entries, 'tool.before').map(callOf)).toEqual(calls.map(({ id }) => id));
    expect(of(entries, 'alarm')[0]).toMatchObject({
      source: 'recorder:nd7',
      data: {
        reason: 'silencing refused',
        how: 'disable-all-hooks',
        file: join(world.project, '.claude/settings.json'),
      },
    });
  });

  it('leaves an alarm where it is best-effort', async () => {
    world = await World.make(path, silencing);
    world.nd7('init', '--yes');
    const output = await world.run('[[scenario:silence]] go');
    const session = sessionIn(output);
    await until(
      'the session is over',
      () => world.entries(session).at(-1)?.kind === 'seal' && of(world.entries(session), 'session.end').length > 0,
    );
    const entries = world.entries(session);
    expect(of(entries, 'alarm')[0]).toMatchObject({ data: { reason: 'silencing', how: 'disable-all-hooks' } });
    // What was called in silence is not in the hooks' story, and exactly that is told.
    const told = new Set([...of(entries, 'tool.before').map(callOf), ...batched(entries)]);
    const silent = callsIn(output)
      .map(({ id }) => id)
      .filter((id) => !told.has(id));
    const alarms = of(entries, 'alarm').filter(({ data }) => data['reason'] === 'hooks silent');
    expect(alarms.flatMap(({ data }) => data['tool_use_ids'] as string[])).toEqual(silent);
    expect(silent.length).toBeGreaterThan(0);
    expect(of(entries, 'session.end').at(-1)?.data['reason']).toBeDefined();
    expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
  });

  it('has its subagents’ calls missed too: they stand in transcripts of their own', async () => {
    const sub = { description: 'Do a thing', prompt: '[[scenario:sub]] please', subagent_type: 'general-purpose' };
    world = await World.make(path, {
      delegate: {
        steps: [
          bash('echo first'),
          bash(WRITE),
          { calls: [{ tool: 'Agent', input: { ...sub, run_in_background: false } }] },
          { text: 'Done.' },
        ],
      },
    });
    world.nd7('init', '--yes');
    const session = sessionIn(await world.run('[[scenario:delegate]] go'));
    await until('the session is over', () => of(world.entries(session), 'session.end').length > 0);
    const ids = world
      .transcripts()
      .filter((file) => file.includes('/subagents/'))
      .flatMap((file) => callsIn(lines(file)).map(({ id }) => id));
    expect(ids).not.toHaveLength(0);
    const alarms = of(world.entries(session), 'alarm').filter(({ data }) => data['how'] === 'transcript');
    expect(alarms.flatMap(({ data }) => data['tool_use_ids'] as string[])).toEqual(expect.arrayContaining(ids));
  });

  it('is noticed without any transcript, by its programs that go on', async () => {
    const steps = Array.from({ length: 8 }, (_, n) => bash(`sleep 5; echo ${n}`));
    world = await World.make(path, { dark: { steps: [bash('echo first'), bash(WRITE), ...steps, { text: 'Done.' }] } });
    world.nd7('init', '--yes');
    const { child, output } = world.start('[[scenario:dark]] go', ['--no-session-persistence']);
    const missed = () =>
      world
        .sessions()
        .flatMap((session) => of(world.entries(session), 'alarm'))
        .filter(({ data }) => data['reason'] === 'hooks silent');
    await until('the alarm', () => missed().length > 0 || child.exitCode !== null);
    expect(missed()[0]?.data).toMatchObject({ how: 'process', client: { pid: child.pid } });
    expect(child.exitCode).toBeNull();
    await output;
    expect(world.transcripts()).toEqual([]);
    expect(missed()).toHaveLength(1);
  });
});

('path' in client && has('tmux') ? describe : describe.skip)(`Claude Code ${VERSION}, interactive (tmux)${why}`, () => {
  it('a session typed at a terminal: prompts, calls, the end by /exit', async () => {
    world = await World.make(path);
    world.nd7('init', '--yes');
    const key = world.environment()['ANTHROPIC_API_KEY'] ?? '';
    writeFileSync(
      join(world.home, '.claude.json'),
      JSON.stringify({
        hasCompletedOnboarding: true,
        theme: 'dark',
        customApiKeyResponses: { approved: [key.slice(-20)], rejected: [] },
        projects: { [world.project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
      }),
    );
    const socket = join(world.folder, 'tmux');
    const tmux = (...args: string[]) =>
      spawnSync('tmux', ['-S', socket, ...args], { encoding: 'utf8', env: world.environment() }).stdout;
    const screen = () => tmux('capture-pane', '-p', '-t', 's');
    try {
      const assignments = Object.entries(world.environment()).map(([name, value]) => `${name}='${value}'`);
      tmux(
        'new-session',
        '-d',
        '-s',
        's',
        '-x',
        '120',
        '-y',
        '40',
        '-c',
        world.project,
        `exec env -i ${assignments.join(' ')} '${path}' --permission-mode acceptEdits --allowedTools Bash,Read,Write,Edit`,
      );
      await until('the prompt is there', () => /(❯|>)/.test(screen()) && world.sessions().length === 1);
      const [session = ''] = world.sessions();
      const type = async (text: string) => {
        tmux('send-keys', '-t', 's', '-l', text);
        await new Promise((resolve) => setTimeout(resolve, 400));
        tmux('send-keys', '-t', 's', 'Enter');
      };
      await type('[[scenario:basic]] go');
      await until(
        `the turn has ended; on the screen:\n${screen()}`,
        () => of(world.entries(session), 'turn.end').length >= 1,
      );
      await type('/exit');
      await until(
        'the session is sealed',
        () => world.entries(session).at(-1)?.kind === 'seal' && of(world.entries(session), 'session.end').length >= 1,
      );
      const entries = world.entries(session);
      expect(of(entries, 'prompt')[0]?.data['prompt']).toBe('[[scenario:basic]] go');
      expect(of(entries, 'tool.before').map(({ data }) => data['tool_name'])).toEqual([
        'Bash',
        'Write',
        'Read',
        'Edit',
      ]);
      expect(of(entries, 'tool.after')).toHaveLength(4);
      expect(world.verdict(session)).toMatchObject({ verdict: 'intact' });
      expect(world.nd7('uninstall')).toContain('Detached from');
      expect(existsSync(join(world.home, '.claude/settings.json'))).toBe(false);
    } finally {
      tmux('kill-server');
    }
  });
});
