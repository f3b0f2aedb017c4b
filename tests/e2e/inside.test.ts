// The real client inside `nd7 run`, attached for the session only: recorded as outside, held by the boundary, each chain naming the other.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { callsIn, findClient, sessionIn, until, VERSION, type World } from './claude.fixture.js';
import {
  agentChains,
  allow,
  bash,
  callOf,
  closed,
  doors,
  insideWorld,
  intents,
  Listener,
  of,
  recorded,
  resultOf,
  runChain,
  withClient,
} from './inside.fixture.js';

let world: World;
afterEach(async () => {
  Listener.end();
  await world.end();
});

withClient(`Claude Code ${VERSION} inside nd7 run, headless`, findClient(), (path) => {
  it('a session of edits: every event, every call, the model by the proxy alone, and no file of the user’s written', async () => {
    world = await insideWorld(path);
    const { entries, calls, output, run } = await recorded(world, 'basic');
    expect(resultOf(output)).toMatchObject({ is_error: false });
    const events = intents(entries).map(({ data }) => data['hook_event_name']);
    expect(events).toEqual(
      expect.arrayContaining([
        'SessionStart',
        'InstructionsLoaded',
        'UserPromptSubmit',
        'PreToolUse',
        'PostToolUse',
        'Stop',
        'SessionEnd',
      ]),
    );
    expect(calls.map(({ name }) => name)).toEqual(['Bash', 'Write', 'Read', 'Edit']);
    for (const kind of ['tool.before', 'tool.after'])
      expect(of(entries, kind).map(callOf)).toEqual(calls.map(({ id }) => id));
    expect(readFileSync(join(world.project, 'src/a.txt'), 'utf8')).toBe('one\nTWO\nthree\n');
    expect(
      new Set(of(run.entries, 'network').map(({ data }) => `${data['via']} ${data['port']} ${data['verdict']}`)),
    ).toEqual(new Set([`loopback ${world.port} allow`]));
    expect(
      run.entries.find(({ source, kind }) => source === 'recorder:nd7' && kind === 'session.end')?.data,
    ).toMatchObject({ code: 0 });
    expect(existsSync(join(world.home, '.claude/settings.json'))).toBe(false);
    expect([...of(entries, 'alarm'), ...of(run.entries, 'alarm'), ...of(entries, 'gap')]).toEqual([]);
    // The client’s own state is kept where it is kept outside.
    expect(world.transcripts()).toHaveLength(1);
    expect(doors(world)).toEqual([]);
    expect(readdirSync(world.home).sort()).toEqual(['.claude', '.nd7', '.ssh']);
  });

  it('attached by nd7 init as well: each event is recorded once', async () => {
    world = await insideWorld(path);
    world.nd7('init', '--yes');
    const { entries, calls } = await recorded(world, 'basic');
    expect(of(entries, 'tool.before').map(callOf)).toEqual(calls.map(({ id }) => id));
    expect(of(entries, 'prompt')).toHaveLength(1);
  });

  it.each([
    ['npx, as the project has it', ['npx', '--yes', 'claude']],
    ['a wrapper of a shell', ['./claude']],
  ])('is found by its file through %s', async (_how, words) => {
    world = await insideWorld(path);
    mkdirSync(join(world.project, 'node_modules/.bin'), { recursive: true });
    symlinkSync(path, join(world.project, 'node_modules/.bin/claude'));
    writeFileSync(join(world.project, 'package.json'), '{"name":"x","version":"1.0.0"}');
    writeFileSync(join(world.project, 'claude'), `#!/bin/sh\nexec '${path}' "$@"\n`, { mode: 0o755 });
    const [program = '', ...more] = [...world.before, ...words, '-p', '[[scenario:one]] go', '--allowedTools', 'Bash'];
    const ran = spawnSync(program, more, { cwd: world.project, env: world.environment(), encoding: 'utf8', input: '' });
    expect([ran.status, ran.stderr]).toEqual([0, '']);
    const [session = ''] = agentChains(world);
    await until('the session is sealed', closed(world, session));
    expect(of(world.entries(session), 'tool.before')).toHaveLength(1);
    expect(of(runChain(world).entries, 'session.joined')).toMatchObject([{ data: { session, agent: 'claude-code' } }]);
  });

  it('hides secrets, refuses writes outside and names what is closed to the program', async () => {
    const probe = [
      'cat ~/.ssh/id_ed25519; cat ~/.nd7/policy.jsonc; ls ~/.nd7/sessions',
      'echo x > ~/made; echo x >> ~/.nd7/bin/nd7-shim; rm -f /run/nd7/hook; mv ~/.nd7 ~/.nd8; echo x > ~/.claude/settings.json',
      'curl -sS --max-time 5 https://example.com/; curl -sS --noproxy "*" --max-time 5 http://192.0.2.1/',
    ];
    // What the client itself would not do a program of the project’s does.
    const steps = probe.map((_, n) => bash(`sh probe-${n}.sh 2>&1; true`));
    world = await insideWorld(path, { probe: { steps: [...steps, { text: 'Done.' }] } });
    probe.forEach((text, n) => writeFileSync(join(world.project, `probe-${n}.sh`), text));
    const { entries, run } = await recorded(world, 'probe');
    const outputs = JSON.stringify(
      [...of(entries, 'tool.after'), ...of(entries, 'tool.failed')].map(({ data }) => data),
    );
    expect(outputs).not.toMatch(/SECRET|"nd7":1/);
    expect(outputs).toMatch(/Read-only file system/);
    expect(readdirSync(world.home).sort()).toEqual(['.claude', '.nd7', '.ssh']);
    expect(existsSync(join(world.home, '.claude/settings.json'))).toBe(false);
    expect(of(run.entries, 'network').filter(({ data }) => data['verdict'] === 'deny')).toMatchObject([
      { data: { host: 'example.com', reason: 'no-rule' } },
    ]);
  });

  it('does not reach the model where no policy lets it', async () => {
    world = await insideWorld(path);
    allow(world, 1);
    const environment = world.environment.bind(world);
    world.environment = (own = {}) => environment({ ...own, CLAUDE_CODE_MAX_RETRIES: '0' });
    const output = await world.run('[[scenario:one]] go');
    expect(resultOf(output)).toMatchObject({ is_error: true });
  });

  it('goes on with the user’s own --settings and --append-system-prompt, and switches hooks on that a project switches off', async () => {
    world = await insideWorld(path);
    const listener = await Listener.before(world.port);
    world.port = listener.port;
    allow(world, listener.port);
    writeFileSync(join(world.project, '.claude/settings.json'), JSON.stringify({ disableAllHooks: true }));
    const own = {
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'touch stopped' }] }] },
      disableAllHooks: true,
    };
    const args = ['--settings', JSON.stringify(own), '--append-system-prompt', 'THEIR-WORDS'];
    const { entries, calls } = await recorded(world, 'basic', args);
    expect(of(entries, 'tool.before').map(callOf)).toEqual(calls.map(({ id }) => id));
    expect(existsSync(join(world.project, 'stopped'))).toBe(true);
    const asked = listener.bodies.find((body) => body.includes('THEIR-WORDS')) ?? '';
    expect(asked).toContain('You run inside an nd7 boundary');
    expect(world.said).toContain('does not hold in this session');
    // Nothing was silenced, and nothing says so.
    expect(of(entries, 'alarm')).toEqual([]);
  });

  it('resumed in another session: one chain of the agent’s, which names both', async () => {
    world = await insideWorld(path);
    const { session, run } = await recorded(world, 'talk');
    const output = await world.run('[[scenario:one]] go', ['--resume', session]);
    expect(sessionIn(output)).toBe(session);
    await until(
      'sealed again',
      () => of(world.entries(session), 'session.end').length >= 4 && closed(world, session)(),
    );
    const second = runChain(world);
    expect(of(world.entries(session), 'session.confined').map(({ data }) => data['run'])).toEqual([
      run.session,
      second.session,
    ]);
    expect(of(second.entries, 'session.joined')).toMatchObject([{ data: { session } }]);
    expect(agentChains(world)).toEqual([session]);
  });

  const waiting = {
    wait: { steps: [bash('echo up; while [ ! -e go ]; do sleep 0.1; done'), bash('echo after'), { text: 'Done.' }] },
  };

  it('a recorder killed in mid-session: another is started from outside, nothing is missed', async () => {
    world = await insideWorld(path, waiting);
    const { output } = world.start('[[scenario:wait]] go');
    await until('the call has begun', () =>
      agentChains(world).some((session) => of(world.entries(session), 'tool.before').length === 1),
    );
    process.kill(Number(readFileSync(join(world.nd7Home, 'run/recorder.lock'), 'utf8')), 'SIGKILL');
    writeFileSync(join(world.project, 'go'), '');
    const calls = callsIn(await output).map(({ id }) => id);
    const [session = ''] = agentChains(world);
    await until('sealed', closed(world, session));
    expect(calls).toHaveLength(2);
    // A recorder that dies between writing and answering is told the same once more: then it stands twice.
    for (const kind of ['tool.before', 'tool.after'])
      expect([...new Set(of(world.entries(session), kind).map(callOf))]).toEqual(calls);
    expect(of(world.entries(session), 'gap')).toEqual([]);
  });

  it.each([
    ['the client', 'process gone', { signal: 'SIGKILL' }],
    ['nd7 run itself', 'process gone', { reason: 'process gone' }],
  ])('%s killed with SIGKILL: both chains get their end, nothing of the session stays', async (whom, reason, end) => {
    world = await insideWorld(path, waiting);
    const { child, output } = world.start('[[scenario:wait]] go');
    await until('the call has begun', () =>
      agentChains(world).some((session) => of(world.entries(session), 'tool.before').length === 1),
    );
    const [session = ''] = agentChains(world);
    const { pid } = of(world.entries(session), 'tool.before')[0]?.peer?.['client'] as { pid: number };
    expect(doors(world)).not.toEqual([]);
    process.kill(whom === 'the client' ? pid : (child.pid ?? 0), 'SIGKILL');
    await output;
    const { session: run } = runChain(world);
    await until('both have ended', () => closed(world, session)() && closed(world, run)());
    await until('the door is gone', () => doors(world).length === 0);
    expect(of(world.entries(session), 'session.end').at(-1)).toMatchObject({
      source: 'recorder:nd7',
      data: { reason },
    });
    expect(of(world.entries(run), 'session.end').at(-1)?.data).toMatchObject(end);
    for (const chain of [session, run]) expect(world.verdict(chain)).toMatchObject({ verdict: 'intact' });
    expect(existsSync(`/proc/${pid}`)).toBe(false);
  });

  it('refuses who is not inside, and says in the chain of the session that somebody tried', async () => {
    world = await insideWorld(path, waiting);
    const { output } = world.start('[[scenario:wait]] go');
    await until('the call has begun', () =>
      agentChains(world).some((session) => of(world.entries(session), 'tool.before').length === 1),
    );
    const [session = ''] = agentChains(world);
    const [door = ''] = doors(world).filter((name) => !name.endsWith('.lock'));
    const meta = Buffer.from('op=hook\0agent=claude-code\0took=complete\0');
    const payload = Buffer.from(
      JSON.stringify({ session_id: session, hook_event_name: 'PreToolUse', tool_name: 'Forged' }),
    );
    const size = (n: number) => Buffer.from(Uint32Array.of(n).buffer);
    const socket = connect(join(world.nd7Home, 'run', door, 'hook'));
    socket.write(
      Buffer.concat([Buffer.from('nd7\x01', 'latin1'), size(meta.length), meta, size(payload.length), payload]),
    );
    await new Promise((resolve) => socket.resume().once('close', resolve));
    writeFileSync(join(world.project, 'go'), '');
    await output;
    const { entries } = runChain(world);
    expect(of(entries, 'alarm')).toMatchObject([{ data: { reason: 'door refused', by: { pid: process.pid } } }]);
    expect(JSON.stringify(world.entries(session))).not.toContain('Forged');
  });

  it.each([
    ['--bare', {}, '--bare makes Claude Code skip its hooks'],
    ['--safe-mode', {}, '--safe-mode makes'],
    ['-v', { CLAUDE_CODE_SIMPLE: '1' }, 'CLAUDE_CODE_SIMPLE makes'],
  ])('%s %j is refused: nothing would be recorded', async (option, more, message) => {
    world = await insideWorld(path);
    const environment = world.environment.bind(world);
    world.environment = (own = {}) => environment({ ...own, ...more });
    const { child, output } = world.start('hello', [option]);
    await output;
    expect([child.exitCode, world.said]).toEqual([2, expect.stringContaining(message) as string]);
    expect(existsSync(join(world.nd7Home, 'sessions'))).toBe(false);
  });
});
