import { printEntry, utf8 } from '@nd7/entry';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKernel } from '@nd7/blake3';
import { readEntry } from '@nd7/entry';
import { LineSplitter } from './lines.js';
import { type Row, rowOf } from './row.js';

const TESTS = join(import.meta.dirname, '..', '..', '..', '..', 'tests');
const PREV = '0'.repeat(64);
const TIME = '2026-11-29T19:41:00.123Z';

function rows(log: Uint8Array): Row[] {
  const all: Row[] = [];
  const splitter = new LineSplitter(createKernel(), (line) => all.push(rowOf(all.length, line)));
  splitter.push(log);
  splitter.finish();
  return all;
}
const row = (line: string | Uint8Array) =>
  rows(Buffer.concat([typeof line === 'string' ? utf8(line) : line, Uint8Array.of(10)]))[0];
const entry = (draft: { source?: string; kind?: string; data?: unknown; detached?: never[] }) =>
  printEntry(0, PREV, {
    time: TIME,
    source: draft.source ?? 'intent:claude-code',
    kind: draft.kind ?? 'tool.before',
    data: JSON.stringify(draft.data ?? {}),
  });

describe('rows of the timeline', () => {
  it('take what the story needs', () => {
    const data = {
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_use_id: 'toolu_1',
      agent_id: 'a1',
      tool_input: { description: 'second', command: 'ls\nrm' },
    };
    expect(row(entry({ data }))).toMatchObject({
      class: 'intent',
      producer: 'claude-code',
      kind: 'tool.before',
      time: Date.parse(TIME),
      event: 'PreToolUse',
      tool: 'Bash',
      call: 'toolu_1',
      agent: 'a1',
      text: 'ls',
    });
  });

  it('say of a connection where it goes and what went through it, beside its call', () => {
    const told = (source: string, kind: string, data: object) => row(entry({ source, kind, data }));
    const to = { via: 'connect', host: 'a.test', port: 443, tool_use_id: 'toolu_1' };
    expect(
      told('decision:egress', 'network', { ...to, verdict: 'allow', reason: null, tied: 'process' }),
    ).toMatchObject({
      class: 'decision',
      call: 'toolu_1',
      text: 'allow a.test:443',
    });
    expect(
      told('decision:egress', 'network', { ...to, verdict: 'deny', reason: 'no-rule', tied: 'hooks' }),
    ).toMatchObject({
      text: 'deny a.test:443, no-rule, its call is known by the hooks alone',
    });
    expect(
      told('effect:egress', 'network.end', { ...to, sent: 10, received: 20, ms: 5, tied: 'process' }),
    ).toMatchObject({
      class: 'effect',
      call: 'toolu_1',
      text: 'a.test:443, 10 bytes out, 20 in',
    });
    // Only nd7's own word is read so.
    expect(told('intent:claude-code', 'network', { ...to, verdict: 'allow' })?.text).toBe('a.test');
  });

  it('say the words that were left of a detached value', () => {
    const line = printEntry(0, PREV, {
      time: TIME,
      source: 'intent:claude-code',
      kind: 'tool.before',
      data: '{"tool_input":{"command":null}}',
      detached: [{ at: '/tool_input/command', blake3: PREV, why: 'secret', shown: 'curl -H [secret]' }],
    });
    expect(row(line)).toMatchObject({ text: 'curl -H [secret]', detached: 1 });
  });

  const base = `{"v":1,"seq":0,"prev":"${PREV}"`;
  it.each([
    ['no time', `${base},"source":"effect:x","kind":"exec","data":{}}`],
    ['a time that is none', `${base},"time":"2026-02-30T00:00:00.000Z","source":"effect:x","kind":"exec","data":{}}`],
    ['a source without a producer', `${base},"time":"${TIME}","source":"effect","kind":"exec","data":{}}`],
    ['a class that is none', `${base},"time":"${TIME}","source":"proof:x","kind":"exec","data":{}}`],
    ['a kind in capitals', `${base},"time":"${TIME}","source":"effect:x","kind":"Exec","data":{}}`],
    ['data that is no object', `${base},"time":"${TIME}","source":"effect:x","kind":"exec","data":[]}`],
    [
      'a source said twice',
      `${base},"time":"${TIME}","source":"intent:x","source":"effect:x","kind":"exec","data":{}}`,
    ],
    [
      'a source said twice behind an escape',
      `${base},"time":"${TIME}","source":"intent:x","\\u0073ource":"effect:x","kind":"exec","data":{}}`,
    ],
    ['no JSON', 'effect:x'],
  ])('%s makes a line unclassified', (_what, line) => {
    expect(row(line)?.class).toBe('unclassified');
  });

  it('classify exactly as the strict reader does, on every line of every vector', () => {
    let seen = 0;
    for (const folder of ['logs', 'edge']) {
      for (const name of readdirSync(join(TESTS, 'vectors', folder)).filter((file) => /\.(jsonl|rlog)$/.test(file))) {
        const log = readFileSync(join(TESTS, 'vectors', folder, name));
        for (const one of rows(log)) {
          if (one.fault === 'torn-tail' || one.fault === 'too-long') continue;
          const view = readEntry(log.subarray(one.start, one.end));
          // The strict reader also wants the first three members; the timeline shows what a line says, the verdict what its links are worth.
          if (view.problem === 'prefix') continue;
          expect([name, one.seq, one.class, one.kind]).toEqual([name, one.seq, view.class, view.kind]);
          seen += 1;
        }
      }
    }
    expect(seen).toBeGreaterThan(1000);
  });

  it('read every captured payload', () => {
    for (const agent of readdirSync(join(TESTS, 'captures'))) {
      for (const name of readdirSync(join(TESTS, 'captures', agent)).filter((file) => file.endsWith('.json'))) {
        const text = readFileSync(join(TESTS, 'captures', agent, name), 'utf8').trim();
        expect([
          name,
          row(printEntry(0, PREV, { time: TIME, source: `intent:${agent}`, kind: 'event', data: text }))?.class,
        ]).toEqual([name, 'intent']);
      }
    }
  });
});
