import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { fromBase64, isKind, parseSource, printEntry, readEntry } from '@nd7/entry';
import { CLAUDE_EVENTS, describeEntry, readHook } from './index.js';

const TESTS = join(import.meta.dirname, '../../../tests');
const files = (folder: string): string[] => readdirSync(join(TESTS, folder)).filter((name) => name.endsWith('.json'));
const payload = (folder: string, name: string): Buffer => readFileSync(join(TESTS, folder, name));
const claude = (bytes: Uint8Array | string, env: Record<string, string> = {}) =>
  readHook(typeof bytes === 'string' ? Buffer.from(bytes) : bytes, { agent: 'claude-code', env });

describe('captured payloads of Claude Code', () => {
  const captures = files('captures/claude-code');

  it('are there', () => expect(captures.length).toBeGreaterThan(200));

  it.each(captures)('%s is kept token for token under its session', (name) => {
    const bytes = payload('captures/claude-code', name);
    const said = JSON.parse(bytes.toString()) as Record<string, unknown>;
    const reading = claude(bytes);
    expect(reading.session).toBe(said['session_id']);
    expect(reading.marks).toEqual({});
    expect(reading.kind).not.toBe('event');
    // The clients print without white space: not one byte may differ.
    expect(reading.data).toBe(bytes.toString().trim());
    expect(reading.facts.event).toBe(said['hook_event_name']);
    expect(reading.facts.toolName).toBe(said['tool_name']);
    expect(reading.facts.toolUseId).toBe(said['tool_use_id']);
    expect(reading.facts.agentId).toBe(said['agent_id']);
  });

  it('have the kinds of the format', () => {
    for (const name of captures) {
      const { kind, source } = claude(payload('captures/claude-code', name));
      expect(isKind(kind)).toBe(true);
      expect(parseSource(source)).toEqual({ class: 'intent', producer: 'claude-code' });
    }
  });

  it('name the calls of a batch', () => {
    const name = captures.find((one) => one.startsWith('parallel--') && one.includes('PostToolBatch')) ?? '';
    const said = JSON.parse(payload('captures/claude-code', name).toString()) as {
      tool_calls: { tool_use_id: string }[];
    };
    expect(claude(payload('captures/claude-code', name)).facts.callIds).toEqual(
      said.tool_calls.map((call) => call.tool_use_id),
    );
  });

  it('say in one line what they are about', () => {
    const name = captures.find((one) => one.startsWith('basic--') && one.includes('PreToolUse-Bash')) ?? '';
    const reading = claude(payload('captures/claude-code', name));
    const entry = readEntry(
      printEntry(0, '0'.repeat(64), {
        time: '2026-11-29T00:00:00.000Z',
        source: reading.source,
        kind: reading.kind,
        data: reading.data,
      }),
    );
    expect(describeEntry(entry)).toMatchObject({ event: 'PreToolUse', tool: 'Bash', text: 'echo hello; pwd' });
  });
});

describe('the 34 events', () => {
  it('are all known and none is refused', () => {
    expect(Object.keys(CLAUDE_EVENTS)).toHaveLength(34);
    for (const [event, { kind }] of Object.entries(CLAUDE_EVENTS)) {
      const reading = claude(JSON.stringify({ session_id: 's', hook_event_name: event }));
      expect([event, reading.kind]).toEqual([event, kind]);
      expect(isKind(kind)).toBe(true);
    }
  });

  it('begin or go on with a session by the source of SessionStart', () => {
    const kindOf = (source: string) =>
      claude(JSON.stringify({ session_id: 's', hook_event_name: 'SessionStart', source })).kind;
    expect(['startup', 'clear', 'fork', 'something'].map(kindOf)).toEqual(Array(4).fill('session.start'));
    expect(['resume', 'compact'].map(kindOf)).toEqual(Array(2).fill('session.resume'));
  });

  it.each(['constructor', '__proto__', 'toString', 'SomethingNew', ''])('an event called "%s" is an event', (name) => {
    expect(claude(JSON.stringify({ session_id: 's', hook_event_name: name })).kind).toBe('event');
  });
});

describe('hostile payloads', () => {
  const read = (name: string, env: Record<string, string> = {}) => claude(payload('hostile/edge', name), env);
  const raw = (data: string) =>
    Buffer.from(fromBase64((JSON.parse(data) as { raw_base64: string }).raw_base64) as Uint8Array);

  it.each([
    ['duplicate-keys.json', 'duplicate-key'],
    ['invalid-utf8.json', 'not-utf8'],
    ['truncated.json', 'bad-json'],
  ])('%s is kept as raw bytes: %s', (name, problem) => {
    const reading = read(name, { CLAUDE_CODE_SESSION_ID: 'from-env' });
    expect(reading).toMatchObject({
      kind: 'event',
      readable: false,
      session: 'from-env',
      source: 'intent:claude-code',
      decisive: true,
    });
    expect(reading.marks).toEqual({ session_from: 'environment', problem });
    expect(raw(reading.data).equals(payload('hostile/edge', name))).toBe(true);
    expect(JSON.parse(reading.data)).toMatchObject({
      unreadable: { reason: problem, bytes: payload('hostile/edge', name).length },
    });
  });

  it('without any session is the recorder’s to place', () => {
    expect(read('truncated.json')).toMatchObject({ session: undefined, marks: { session_from: 'recorder' } });
    expect(read('missing-session-id.json')).toMatchObject({ session: undefined, readable: true, kind: 'tool.before' });
    expect(read('missing-session-id.json', { CLAUDE_CODE_SESSION_ID: '../x' }).session).toBeUndefined();
  });

  it('that names a path as its session never gets one', () => {
    const reading = read('session-id-path-traversal.json', { CLAUDE_CODE_SESSION_ID: 'good' });
    expect(reading).toMatchObject({
      session: 'good',
      marks: { session_claimed: '../../etc/passwd', session_from: 'environment' },
    });
  });

  it('with a byte order mark, numbers of any size, lone surrogates or controls is kept', () => {
    expect(read('utf8-bom.json')).toMatchObject({ readable: true, marks: { bom: true }, kind: 'turn.end' });
    expect(read('big-numbers.json').data).toContain('{"id":12345678901234567890,"x":1e400,"y":-0.0,"z":1.10}');
    expect(read('lone-surrogate-escape.json').data).toContain('"ok \\udc88 tail \\ud800"');
    expect(read('escaped-nul-and-controls.json').data).toContain('"a\\u0000b\\u001b[31mred\\u001b[0m\\r\\n"');
    expect(read('unknown-event-and-fields.json')).toMatchObject({ kind: 'event', marks: {} });
  });

  it('of great depth is kept as raw bytes, quickly', () => {
    const deep = `{"session_id":"s","x":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`;
    expect(claude(deep)).toMatchObject({ readable: false, kind: 'event' });
  });

  it('disagreeing with the environment is marked, the payload believed', () => {
    const reading = claude(JSON.stringify({ session_id: 'a', hook_event_name: 'Stop' }), {
      CLAUDE_CODE_SESSION_ID: 'b',
    });
    expect(reading).toMatchObject({ session: 'a', marks: { session_env: 'b' } });
  });

  it('whatever the bytes, never throws and always gives an entry that reads back', () => {
    const anyBytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .dictionary(
          fc.constantFrom(
            'session_id',
            'hook_event_name',
            'tool_name',
            'tool_calls',
            'tool_input',
            'source',
            'turn_id',
            'model',
          ),
          fc.jsonValue(),
        )
        .map((value) => Buffer.from(JSON.stringify(value))),
    );
    fc.assert(
      fc.property(anyBytes, fc.string(), (bytes, agent) => {
        const reading = readHook(bytes, { agent, env: { CLAUDE_CODE_SESSION_ID: 'x y' } });
        const line = printEntry(0, '0'.repeat(64), {
          time: '2026-11-29T00:00:00.000Z',
          source: reading.source,
          kind: reading.kind,
          data: reading.data,
          peer: reading.marks,
        });
        const entry = readEntry(line);
        expect(entry).toMatchObject({ class: 'intent', kind: reading.kind, data: reading.data });
        describeEntry(entry);
        reading.deny('no');
      }),
      { numRuns: 500 },
    );
  });
});

describe('foreign payloads', () => {
  it('are recorded under the registered agent with both names', () => {
    const codex = files('captures/codex').find((name) => name.includes('PreToolUse')) ?? '';
    expect(claude(payload('captures/codex', codex)).marks).toEqual({
      agent_claimed: 'claude-code',
      agent_detected: 'codex',
    });
    const gemini = files('captures/gemini-cli').find((name) => name.includes('BeforeTool-')) ?? '';
    expect(claude(payload('captures/gemini-cli', gemini)).marks).toMatchObject({ agent_detected: 'gemini-cli' });
    const copilot = files('captures/copilot-cli').find((name) => name.includes('preToolUse')) ?? '';
    const reading = claude(payload('captures/copilot-cli', copilot));
    expect(reading).toMatchObject({
      marks: { agent_detected: 'copilot-cli' },
      session: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
    });
  });

  it('of no captured Claude payload are seen', () => {
    for (const name of files('captures/claude-code'))
      expect(claude(payload('captures/claude-code', name)).marks).not.toHaveProperty('agent_detected');
  });

  it('of Codex are read by its own adapter', () => {
    for (const name of files('captures/codex')) {
      const reading = readHook(payload('captures/codex', name), { agent: 'codex', env: {} });
      expect(reading.marks).toEqual({});
      expect(reading.kind).not.toBe('event');
      expect(reading.source).toBe('intent:codex');
    }
  });

  it('of an agent without an adapter are events under its name, a bad name is "unknown"', () => {
    expect(readHook(Buffer.from('{"sessionId":"z"}'), { agent: 'some-agent', env: {} })).toMatchObject({
      source: 'intent:some-agent',
      session: 'z',
      kind: 'event',
    });
    expect(readHook(Buffer.from('{}'), { agent: 'Böse "x"', env: {} })).toMatchObject({
      source: 'intent:unknown',
      marks: { agent_claimed: 'Böse "x"' },
    });
  });
});

describe('answers', () => {
  const of = (event: string) => claude(JSON.stringify({ session_id: 's', hook_event_name: event }));
  it('deny a call in the form Claude Code reads', () => {
    expect(JSON.parse(of('PreToolUse').deny('why')?.stdout ?? '')).toEqual({
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'why' },
    });
    expect(of('ConfigChange').deny('why')).toEqual({ exit: 2, stdout: '', stderr: 'why' });
    expect(of('PostToolUse').deny('why')).toBeUndefined();
    expect(claude('{').deny('why')).toEqual({ exit: 2, stdout: '', stderr: 'why' });
  });
  it('are waited for exactly where the client acts upon them', () => {
    expect(Object.keys(CLAUDE_EVENTS).filter((event) => of(event).decisive)).toEqual([
      'PreToolUse',
      'PermissionRequest',
      'PreSkillShellCommand',
      'ConfigChange',
    ]);
  });
});
