// What stands in addresses comes from anywhere: links, other people, old versions.
import fc from 'fast-check';
import { receiptsWanted } from '../check/receipts-wanted.js';
import { readIncidentsSearch } from './incidents/search.js';
import { readSessionSearch } from './session/search.js';
import { readSessionsSearch, vaultQuery } from './sessions/search.js';
import { parseFragment } from './sign-in/fragment.js';
import { sortFiles } from './verify/files.js';

describe('the sign-in link', () => {
  const vkey = 'vault.example/acme+3f9a61c2+AQabc/+d==';
  it.each([
    ['', {}],
    ['#token=nd7r1_abc', { token: 'nd7r1_abc' }],
    [`#token=nd7r1_abc&pin=${encodeURIComponent(vkey)}`, { token: 'nd7r1_abc', pin: vkey }],
    [`#token=nd7r1_abc&pin=${vkey}`, { token: 'nd7r1_abc', pin: vkey }],
    ['#token=&pin=', {}],
    ['#else=1', {}],
    ['#to=/machines/ab/sessions/s-1?entry=4', { to: '/machines/ab/sessions/s-1?entry=4' }],
    ['#to=//evil.example/sessions', {}],
    ['#to=https://evil.example/sessions', {}],
    ['#to=javascript:alert(1)', {}],
    ['#to=/sessionsx', {}],
    ['#to=/sign-in', {}],
  ])('%s', (hash, link) => {
    expect(parseFragment(hash)).toEqual(link);
  });
});

describe('filters in the address', () => {
  it('are kept when nobody knows the value, and left out when they cannot be one', () => {
    expect(
      readSessionsSearch({ state: 'sideways', agent: 7, q: ['x'], machine: 'x'.repeat(300), checked: '' }),
    ).toEqual({ state: 'sideways', agent: '7' });
    expect(vaultQuery({ state: 'sideways', machine: 'lena', agent: 'codex' })).toEqual({ agent: 'codex' });
    expect(vaultQuery({ state: 'open', machine: 'a'.repeat(64) })).toEqual({ state: 'open', machine: 'a'.repeat(64) });
    expect(readSessionSearch({ view: 'entries', entry: '12', hide: 'intent' })).toEqual({
      view: 'entries',
      entry: 12,
      hide: 'intent',
    });
    expect(readSessionSearch({ view: 'odd', entry: '-1' })).toEqual({});
    expect(readSessionSearch({ entry: '1e400' })).toEqual({});
    expect(readIncidentsSearch({ state: 'over', cursor: 'x' })).toEqual({ state: 'over' });
    expect(readIncidentsSearch({ state: 'sideways' })).toEqual({});
  });

  it('never throw', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('q', 'view', 'entry', 'state', 'hide', '__proto__'), fc.anything()),
        (raw) => {
          readSessionsSearch(raw);
          readSessionSearch(raw);
          readIncidentsSearch(raw);
        },
      ),
    );
  });
});

describe('receipts that are fetched', () => {
  const segments = (count: number) => Array.from({ length: count }, (_, from) => ({ from, receipt: from < count - 1 }));
  it('are all of a usual session, and the first and the newest of a very long one', () => {
    expect(receiptsWanted(segments(5))).toEqual([0, 1, 2, 3]);
    const wanted = receiptsWanted(segments(5000));
    expect([wanted.length, wanted[0], wanted.at(-1)]).toEqual([33, 0, 4998]);
  });
});

describe('files that are dropped', () => {
  const file = (name: string, content: string) => ({ file: new File([content], name) });
  const log = '{"v":1,"seq":0,"prev":"0","time":"t","data":{"session_id":"abc-1"}}\n';

  it('are told apart by what is in them', async () => {
    const sorted = await sortFiles([
      file('a', log),
      file('b', `{"entries":1,"hash":"${'0'.repeat(64)}","bytes":70}`),
      file('c', 'c2sp.org/tlog-proof@v1\nextra x\n'),
      file('d.png', '\u0089PNG'),
      file('e', ''),
      file('f', 'hello there'),
      file('head.json', '{"entries":1,"hash":"0","bytes":70}'),
    ]);
    expect([sorted.log?.name, sorted.head?.name, sorted.receipts.map((one) => one.name), sorted.session]).toEqual([
      'a',
      'b',
      ['c'],
      'abc-1',
    ]);
    expect(sorted.refused.map((one) => one.saw)).toEqual([
      expect.any(String),
      'an empty file',
      'text that begins “hello there”',
      'JSON, but no head with its entries, hash and bytes',
    ]);
  });

  it('take the session’s id from the folder before anything an agent said', async () => {
    expect((await sortFiles([{ ...file('log.jsonl', log), folder: 'real-id' }])).session).toBe('real-id');
    expect((await sortFiles([{ ...file('log.jsonl', log), folder: '../x' }])).session).toBe('abc-1');
  });

  it('take one log, and say so of a second', async () => {
    expect((await sortFiles([file('a.jsonl', log), file('b.jsonl', log)])).refused).toEqual([
      { name: 'b.jsonl', saw: 'a second log beside a.jsonl' },
    ]);
  });
});
