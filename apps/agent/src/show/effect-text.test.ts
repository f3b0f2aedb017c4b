import { effectText } from './effect-text.js';

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
  [
    'network.end',
    {
      host: 'a.test',
      port: 443,
      sent: 10,
      received: 20,
      ms: 5,
      tied: 'process',
      tool_use_id: 'toolu_1',
      command: 'c-1',
    },
    'a.test:443 ended: 10 bytes out, 20 in, 5 ms, of call toolu_1',
  ],
  [
    'network.end',
    { host: 'a.test', port: 443, connections: 7, sent: 10, received: 20, ms: 5, tied: 'hooks', tool_use_id: 'toolu_1' },
    'a.test:443 7 connections ended: 10 bytes out, 20 in, 5 ms at most, of call toolu_1 (by the hooks alone)',
  ],
  [
    'network.end',
    { host: null, connections: 2, sent: 1, received: 2, ms: 5 },
    'various hosts 2 connections ended: 1 bytes out, 2 in, 5 ms at most',
  ],
  [
    'network.end',
    { host: 'a.test', port: 22, sent: null, received: null, ms: 5, tied: 'none' },
    'a.test:22 ended: how much is not known, 5 ms',
  ],
])('%s %j', (kind, data, text) => {
  expect(effectText(kind, data)).toBe(text);
});
