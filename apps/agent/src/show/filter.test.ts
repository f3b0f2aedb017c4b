import { CliError } from '../cli/io.js';
import type { TimelineEntry } from './entry-line.js';
import { filterOf, type FilterOptions } from './filter.js';

const NOW = Date.parse('2026-11-29T20:00:00.000Z');
const entry: TimelineEntry = {
  seq: 3,
  time: '2026-11-29T19:41:00.123Z',
  class: 'intent',
  source: 'intent:claude-code',
  kind: 'tool.before',
  event: 'PreToolUse',
  tool: 'mcp__peer__echo',
  tool_use_id: null,
  agent_id: null,
  text: 'npm test',
  outcome: null,
  detached: 0,
  problem: null,
};
const passes = (options: Partial<FilterOptions>, one: Partial<TimelineEntry> = {}) =>
  filterOf({ class: [], kind: [], tool: [], ...options }, NOW)(
    { ...entry, ...one },
    () => '{"data":{"tool_input":"NPM run"}}',
  );

test.each<[Partial<FilterOptions>, boolean]>([
  [{}, true],
  [{ class: ['intent'] }, true],
  [{ class: ['effect', 'recorder'] }, false],
  [{ class: ['effect,intent'] }, true],
  [{ kind: ['tool.*'] }, true],
  [{ kind: ['TOOL.BEFORE'] }, true],
  [{ kind: ['tool'] }, false],
  [{ kind: ['*.after'] }, false],
  [{ kind: ['t*l.*e'] }, true],
  [{ kind: ['tool.before*before'] }, false],
  [{ tool: ['mcp__*'] }, true],
  [{ tool: ['*'] }, true],
  [{ tool: ['Bash'] }, false],
  [{ since: '15m' }, false],
  [{ since: '1h' }, true],
  [{ until: '1h' }, false],
  [{ until: '2026-11-29T19:41:01Z' }, true],
  [{ since: '2026-11-29' }, true],
  [{ since: '2026-11-30' }, false],
  [{ grep: 'NPM TEST' }, true],
  [{ grep: 'npm run' }, true],
  [{ grep: 'yarn' }, false],
  [{ class: ['intent'], kind: ['prompt'] }, false],
])('%j: %s', (options, expected) => {
  expect(passes(options)).toBe(expected);
});

test('an entry without a time passes no filter by time', () => {
  expect([passes({ since: '9d' }, { time: null }), passes({ until: '2030-01-01' }, { time: null })]).toEqual([
    false,
    false,
  ]);
});

test.each<Partial<FilterOptions>>([
  { class: ['rumour'] },
  { since: 'yesterday' },
  { until: '29.11.2026' },
  { since: '2026-99-99' },
])('%j is a mistake', (options) => {
  expect(() => passes(options)).toThrow(CliError);
});
