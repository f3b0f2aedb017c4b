// What is made of attempts that failed, could not be tried, or got out; and of what somebody inside writes in place of answers.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManifestRow } from '@nd7/confine';
import type { Ruleset } from '@nd7/policy';
import { rulesetFor } from '../confine/ruleset.js';
import { Answers } from './answers.js';
import { ATTACKS } from './attacks.js';
import { judge, lacks, type Came } from './judge.js';
import { keep, kept, type Kept } from './kept.js';
import { sweep, Traces } from './traces.js';
import { World } from './world.js';

let folder: string;
let world: World;
let ruleset: Ruleset;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-judge-'));
  for (const name of ['outside', 'nd7', 'nd7/run', 'nd7/run/hidden', 'project']) mkdirSync(join(folder, name));
  const compiled = rulesetFor({
    ...{ profile: 'default', agent: undefined, environment: {} },
    ...{ home: folder, project: join(folder, 'project'), nd7Home: join(folder, 'nd7') },
  });
  ({ ruleset } = compiled);
  world = await World.make(
    {
      outside: join(folder, 'outside'),
      hidden: join(folder, 'nd7/run/hidden'),
      project: join(folder, 'project'),
      tmp: undefined,
      varTmp: undefined,
      shm: undefined,
    },
    undefined,
    undefined,
    join(folder, 'copy'),
    compiled.policies,
  );
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true });
});

const named = (name: string) => {
  const attack = ATTACKS.find((one) => one.name === name);
  if (attack === undefined) throw new Error(name);
  return attack;
};
const row = (status: ManifestRow['status'], limit?: string): ManifestRow => ({
  property: 'sockets.pathname',
  status,
  provider: '',
  proofs: [],
  limit,
});
const refused: Came = { code: 1, said: '', error: 'EACCES' };
const side = (name: string, came: Came | undefined) => ({
  world,
  came: new Map(came === undefined ? [] : [[name, came]]),
});
const verdict = (name: string, inside: Came | undefined, twin: Came | undefined, manifest?: ManifestRow): string[] => {
  const { verdict: what, why } = judge(named(name), side(name, inside), side(name, twin), manifest, ruleset);
  return [what, why];
};

describe('the verdict', () => {
  it('has held only where the twin got through', () => {
    const read: Came = { code: 0, said: world.canary, error: '' };
    expect(verdict('read-secret', refused, read)).toEqual(['held', 'EACCES']);
    expect(verdict('read-secret', refused, refused)).toEqual(['not-shown', 'outside it fails too: EACCES']);
    expect(verdict('read-secret', undefined, read)).toEqual(['not-shown', 'nothing came back of it']);
    expect(verdict('read-secret', { ...refused, code: 2, error: 'no' }, read)).toEqual(['skipped', 'no']);
    expect(verdict('read-secret', read, undefined)).toEqual(['not-held', 'it got out']);
  });

  it('does not believe an attempt that says that it read something, nor one that says that it was refused', () => {
    expect(verdict('read-secret', { code: 0, said: 'another', error: '' }, refused)[0]).toBe('not-shown');
    world.heard.add('tcp');
    expect(verdict('tcp-loopback', refused, refused)[0]).toBe('not-held');
  });

  it('admits what the manifest says, in its words, and nothing else', () => {
    world.heard.add('unix').add('unix-late');
    const limit = 'sockets that are bound outside during the session, in folders that can be read, can be connected to';
    expect(verdict('unix-socket-late', refused, refused, row('partial', limit))).toEqual(['admitted', limit]);
    expect(verdict('unix-socket-late', refused, refused, row('partial', 'granted: docker'))[0]).toBe('not-held');
    expect(verdict('unix-socket-late', refused, refused, row('full', limit))[0]).toBe('not-held');
    expect(verdict('unix-socket-late', refused, refused)[0]).toBe('not-held');
    // A socket that was there at the start is covered whatever is said of those that come later.
    expect(verdict('unix-socket', refused, refused, row('partial', limit))[0]).toBe('not-held');
  });

  it('skips by name what needs a program that could not be built, or a place that is not there', () => {
    const skipped = ATTACKS.filter((attack) => lacks(attack, world) !== undefined).map(({ name }) => name);
    expect(skipped).toEqual(
      expect.arrayContaining(['io-uring', 'ptrace', 'mount', 'read-tmp', 'write-shm', 'run-in-tmp']),
    );
    expect(skipped).not.toEqual(expect.arrayContaining(['read-secret']));
    expect(verdict('mount', undefined, undefined)).toEqual(['skipped', expect.stringContaining('native/probes')]);
    expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
  });
});

it('what comes from inside in place of answers is read as far as it is one, and harms nothing', () => {
  const own = join(folder, 'answers');
  mkdirSync(own);
  const ports: number[] = [];
  const answers = new Answers(
    own,
    [],
    (port) => ports.push(port),
    () => undefined,
  );
  const hostile = ['null', '[]', '3', '{', '', '{"name":1,"code":0}', '{"name":"a"}', '{"name":"b","code":"0"}'];
  hostile.push('{"name":"c","listening":0}', '{"name":"c","listening":70000}', '{"name":"c","listening":"x"}');
  hostile.push('{"name":"__proto__","code":0,"said":{},"error":[]}', '\u0000\u001b[31m');
  writeSync(
    answers.stdio[1],
    `${hostile.join('\n')}\n{"name":"d","listening":8080}\n{"name":"d","code":0}\n{"name":"cut`,
  );
  answers.end();
  answers.close();
  expect([...answers.came]).toEqual([
    ['__proto__', { code: 0, said: '', error: '' }],
    ['d', { code: 0, said: '', error: '' }],
  ]);
  expect(ports).toEqual([8080]);
});

it('takes away what a killed run has left, and nothing that only a note names', () => {
  const home = join(folder, 'swept');
  for (const name of [
    '',
    '/selftest-0123456789abcdef',
    '/selftest-fedcba9876543210',
    '/kept',
    '/.nd7-selftest-0123456789abcdef',
  ])
    mkdirSync(home + name);
  const note = (id: string, text: string): void => writeFileSync(join(home, `selftest-${id}/run.json`), text);
  const folders = [join(home, 'kept'), `${home}/.nd7-selftest-0123456789abcdef`, 7, null];
  note('0123456789abcdef', JSON.stringify({ pid: 1, started: 'long ago', folders }));
  note('fedcba9876543210', '{"pid":');
  const running = new Traces(home);
  sweep(home);
  expect(readdirSync(home).sort()).toEqual(['kept', `selftest-${running.id}`]);
  running.remove();
  expect(readdirSync(home)).toEqual(['kept']);
});

it('keeps one result for each kernel, policy and version, whatever lay in its file', () => {
  const home = join(folder, 'kept');
  mkdirSync(home);
  const counts = { held: 1, admitted: 0, 'not-held': 0, 'not-shown': 0, skipped: 0 };
  const result = (time: number, ruleset_: string): Kept => ({
    version: '1',
    kernel: '6',
    ruleset: ruleset_,
    time,
    counts,
  });
  for (const text of ['', '{}', '[null, 1, {"version": "1"}]', '{"a":']) {
    writeFileSync(join(home, 'selftests.json'), text);
    expect(kept(home)).toEqual([]);
  }
  keep(home, result(1, 'a'));
  keep(home, result(2, 'b'));
  keep(home, result(3, 'a'));
  expect(kept(home)).toEqual([result(3, 'a'), result(2, 'b')]);
  expect(readdirSync(home)).toEqual(['selftests.json']);
});
