// What is made of a client's transcripts and of its process, both of which may be missing, moved or hostile.
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processFacts } from '@nd7/kernel';
import fc from 'fast-check';
import {
  entriesOf,
  inProcess,
  killStarted,
  removeThrowAways,
  say,
  start,
  throwAway,
  until,
  verdictOf,
} from '../testing/recorder.fixture.js';
import type { Recorder } from './recorder.js';
import { ProcessWatch, SilenceWatch } from './silence.js';
import { Transcript } from './transcript.js';

let folder: string;
let path: string;
beforeEach(() => {
  folder = throwAway();
  path = join(folder, 's.jsonl');
});
afterEach(() => {
  killStarted();
  removeThrowAways();
});

const line = (id: string, more: object = {}) =>
  `${JSON.stringify({ type: 'assistant', message: { content: [{ type: 'tool_use', id, input: {} }] }, ...more })}\n`;
const nobody: ReadonlySet<string> = new Set();
const LATER = 20_000;

describe('a transcript', () => {
  it('gives each call once, wherever a look cuts the lines', () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z0-9_]{1,12}$/), { maxLength: 12 }),
        fc.array(fc.nat({ max: 900 }), { maxLength: 8 }),
        (ids, cuts) => {
          rmSync(path, { force: true });
          const transcript = new Transcript(path, 0);
          expect(transcript.grown()).toBeUndefined();
          const bytes = Buffer.from(ids.map((id) => line(id, { text: 'ü\u2028' })).join(''));
          const seen: string[] = [];
          for (const cut of [...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length].map(
            (to, at, all) => bytes.subarray(at === 0 ? 0 : all[at - 1], to),
          )) {
            appendFileSync(path, cut);
            seen.push(...(transcript.grown() ?? []));
          }
          expect(seen).toEqual(ids);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('of any bytes is read without harm', () => {
    const rubbish = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.json().map((text) => Buffer.from(`"tool_use"${text}\n`)),
      fc.json().map((text) => Buffer.from(`{"message":${text},"x":"tool_use"}\n`)),
      fc.json().map((text) => Buffer.from(`{"message":{"content":${text}},"x":"tool_use"}\n`)),
      fc.json().map((text) => Buffer.from(`{"message":{"content":[${text}]},"timestamp":${text},"x":"tool_use"}\n`)),
    );
    fc.assert(
      fc.property(fc.array(rubbish, { maxLength: 6 }), (parts) => {
        rmSync(path, { force: true });
        const transcript = new Transcript(path, 0, true);
        for (const part of parts) appendFileSync(path, part);
        appendFileSync(path, `\n${line('after')}`);
        expect(transcript.grown()?.at(-1)).toBe('after');
      }),
      { numRuns: 200 },
    );
  });

  it('says that there is none where the client can be writing none', () => {
    expect(new Transcript(join(folder, 'none'), 0).grown()).toBeUndefined();
    expect(new Transcript(folder, 0).grown()).toBeUndefined();
    symlinkSync('/dev/null', path);
    expect(new Transcript(path, 0).grown()).toBeUndefined();
  });

  it('put in another’s place has its new calls told and not its old ones', () => {
    writeFileSync(path, line('old', { timestamp: '2026-11-29T10:00:00.000Z' }));
    const transcript = new Transcript(path, Date.parse('2026-11-29T12:00:00.000Z'));
    expect(transcript.grown()).toEqual([]);
    writeFileSync(`${path}.new`, line('old', { timestamp: '2026-11-29T10:00:00.000Z', padding: 'x'.repeat(500) }));
    appendFileSync(`${path}.new`, line('silent', { timestamp: '2026-11-29T13:00:00.000Z' }));
    renameSync(`${path}.new`, path);
    expect(transcript.grown()).toEqual(['silent']);
    rmSync(path);
    expect(transcript.grown()).toBeUndefined();
    writeFileSync(path, line('too'));
    expect(transcript.grown()).toEqual(['too']);
  });

  it('of many megabytes is read in parts, and to its end when the session is over', () => {
    writeFileSync(path, '');
    const transcript = new Transcript(path, 0);
    expect(transcript.grown()).toBeUndefined();
    appendFileSync(path, `{"x":"${'y'.repeat(3_000_000)}"}\n`.repeat(3) + line('far'));
    expect(transcript.grown()).toEqual([]);
    expect(transcript.grown(true)).toEqual(['far']);
  });
});

describe('silence', () => {
  it('is told once, after a time in which a hook may still come', () => {
    const watch = new SilenceWatch(0);
    expect(watch.look(path, nobody, 0)).toEqual({ silent: [], hasTranscript: false });
    writeFileSync(path, line('told') + line('silent'));
    expect(watch.look(path, nobody, 1_000)).toEqual({ silent: [], hasTranscript: true });
    expect(watch.look(path, new Set(['told']), 1_000 + LATER).silent).toEqual(['silent']);
    expect(watch.look(path, new Set(['told']), 1_000 + 2 * LATER).silent).toEqual([]);
    expect(watch.look(undefined, nobody, 0)).toEqual({ silent: [], hasTranscript: false });
  });

  it('is heard in the transcripts of subagents, begun before or after, and of workflows', () => {
    const agents = join(folder, 's', 'subagents');
    mkdirSync(join(agents, 'workflows', 'w'), { recursive: true });
    writeFileSync(path, line('main'));
    writeFileSync(join(agents, 'agent-1.jsonl'), line('old'));
    const watch = new SilenceWatch(0);
    watch.look(path, nobody, 0);
    appendFileSync(join(agents, 'agent-1.jsonl'), line('one'));
    writeFileSync(join(agents, 'agent-2.jsonl'), line('two'));
    writeFileSync(join(agents, 'workflows', 'w', 'agent-3.jsonl'), line('three'));
    writeFileSync(join(agents, 'agent-2.meta.json'), line('no transcript'));
    expect(watch.look(path, nobody, 0, true).silent.sort()).toEqual(['one', 'three', 'two']);
  });
});

(process.platform === 'linux' ? describe : describe.skip)('a client without a transcript', () => {
  /** A shell that stands for the client: it runs one program for each line it is given. */
  async function client() {
    const child = start('sh', ['-c', 'while read -r line; do /bin/true; echo done; done'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let done = 0;
    child.stdout?.on('data', (chunk: Buffer) => (done += chunk.toString().split('\n').length - 1));
    const facts = () => ({ pid: child.pid ?? 0, start: processFacts(child.pid ?? 0)?.start ?? '' });
    let asked = 0;
    const program = async () => {
      child.stdin?.write('go\n');
      asked++;
      await until('it has ended', () => done === asked);
    };
    await program();
    return { facts: facts(), program };
  }

  it('whose programs go on while no hook speaks is noticed, once per silence', async () => {
    const { facts, program } = await client();
    const watch = new ProcessWatch();
    let now = 1_000_000;
    const heard = now;
    const look = (at = heard) => watch.look(facts, at, (now += 3_000));
    expect(look()).toBeUndefined();
    // A hook may take its time to end, and so may others beside it.
    for (let n = 0; n < 3; n++) {
      await program();
      expect(look()).toBeUndefined();
    }
    now = heard + LATER;
    await program();
    expect(look()).toBeUndefined();
    const first = now;
    await program();
    expect(look()).toBeUndefined();
    expect(look()).toBeUndefined(); // nothing ended meanwhile
    await program();
    expect(look()).toBe(first);
    await program();
    expect(look()).toBeUndefined();
    // It speaks again, and falls silent again.
    const again = now;
    expect(look(again)).toBeUndefined();
    now = again + LATER;
    for (let n = 0; n < 2; n++) {
      await program();
      expect(look(again)).toBeUndefined();
    }
    await program();
    expect(look(again)).toBeDefined();
  });

  it('that sits idle is not, for however long, nor one that is gone', async () => {
    const { facts } = await client();
    const watch = new ProcessWatch();
    for (let n = 0; n < 1_000; n++) expect(watch.look(facts, 0, LATER + n * 3_000)).toBeUndefined();
    expect(watch.look({ ...facts, start: 'another' }, 0, 1e9)).toBeUndefined();
    expect(watch.look({ pid: 0, start: '' }, 0, 1e9)).toBeUndefined();
  });
});

(process.platform === 'linux' ? describe : describe.skip)('silence of a client without a transcript', () => {
  let home: string;
  let recorder: Recorder | undefined;
  beforeEach(() => {
    home = join(folder, 'home');
  });
  afterEach(async () => {
    await recorder?.stop();
  });
  const hooksSilent = () =>
    entriesOf(home, 's').filter(({ kind, data }) => kind === 'alarm' && data?.includes('"hooks silent"'));
  /** A client that runs a program a look, for five looks, long after its hook has spoken. */
  async function goOn(env: (pid: number) => Record<string, string>): Promise<number> {
    const now = { ms: Date.now() };
    await recorder?.stop();
    const one = (recorder = inProcess(home, { lookMs: 20, clock: { now: () => now.ms } }));
    const client = start('sh', ['-c', 'sleep 1000 & echo $!; while read -r line; do /bin/true; echo done; done'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let said = '';
    client.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await until('it runs', () => said.endsWith('\n'));
    const hook = Number(said);
    orphans.push(hook);
    const payload = { session_id: 's', hook_event_name: 'PreToolUse', tool_use_id: 't1', transcript_path: path };
    await say(one, payload, env(client.pid ?? 0), hook);
    now.ms += 20_000;
    for (let n = 1; n <= 5; n++) {
      const seen = one.looks;
      client.stdin?.write('go\n');
      await until('it has ended', () => said.split('done').length === n + 1);
      await until('a look', () => one.looks > seen + 1);
    }
    return client.pid ?? 0;
  }

  it('is noticed by its programs that go on, once', async () => {
    const pid = await goOn((client) => ({ CLAUDE_PID: String(client) }));
    expect(hooksSilent().map(({ data }) => JSON.parse(data ?? '') as unknown)).toEqual([
      expect.objectContaining({ how: 'process', client: expect.objectContaining({ pid }) as object }),
    ]);
    expect(await verdictOf(home, 's')).toMatchObject({ verdict: 'intact' });
  });

  it('is not, where no hook has named it, or a status line makes it run programs', async () => {
    await goOn(() => ({}));
    const project = throwAway();
    mkdirSync(join(project, '.claude'));
    writeFileSync(join(project, '.claude/settings.json'), '{"statusLine":{"type":"command","command":"date"}}');
    await goOn((client) => ({ CLAUDE_PID: String(client), CLAUDE_PROJECT_DIR: project }));
    expect(hooksSilent()).toEqual([]);
  });
});

const orphans: number[] = [];
afterEach(() => {
  for (const pid of orphans.splice(0))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // gone already
    }
});
