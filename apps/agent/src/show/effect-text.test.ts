import { commandText } from './effect-text.js';

it.each<[string, Record<string, unknown>, string | undefined]>([
  ['exec', { command: 'c-1', how: 'broker', tied: 'text' }, 'c-1 begins'],
  [
    'exec',
    { command: 'c-2', how: 'itself', tied: 'only' },
    'c-2 begins, run by who asked, not in the words of its call',
  ],
  ['exec', { command: 'c-3', left_out: ['LD_PRELOAD', 'ENV'] }, 'c-3 begins, without LD_PRELOAD, ENV'],
  ['exec.end', { command: 'c-1', code: 3, signal: null, ms: 12 }, 'c-1 ended: exit 3, 12 ms'],
  [
    'exec.end',
    { command: 'c-1', code: null, signal: 9, ms: 1, lost: true },
    'c-1 ended: killed by SIGKILL with its keeper, 1 ms',
  ],
  ['exec.end', { command: 'c-4', direct: true }, 'c-4 was handed back: it runs as the agent’s child'],
  ['exec.end', { code: 0 }, undefined],
  ['net', { command: 'c-1' }, undefined],
])('%s %j', (kind, data, text) => {
  expect(commandText(kind, data)).toBe(text);
});
