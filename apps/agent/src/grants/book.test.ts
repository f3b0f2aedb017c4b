// Grants of a session by themselves: recorded before they act, ended in time, held where nobody may widen.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { parseHost, decideHost, why, type Host } from '@nd7/policy';
import { ADA, file, net, removeMade, TestBook } from './book.fixture.js';
import type { Request } from './entry.js';

afterEach(removeMade);

const reached = ({ book }: TestBook, host: string, port = 443): boolean =>
  decideHost(book.network, parseHost(host) as Host, port).allow;
const refusal = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return 'not refused';
  } catch (error) {
    const { message, hint = '' } = error as { message: string; hint?: string };
    return `${message} | ${hint}`;
  }
};

describe('a grant', () => {
  it('of a host holds once it is recorded, and no longer than it lives', async () => {
    const test = new TestBook();
    expect(reached(test, 'a.test')).toBe(false);
    const { grants } = await test.book.allow([net('a.test:443')], 'session', ADA);
    expect([grants[0]?.id, reached(test, 'a.test'), reached(test, 'a.test', 80)]).toEqual(['g1', true, false]);
    expect(test.entries).toMatchObject([
      {
        kind: 'grant',
        source: 'decision:grant',
        data: { id: 'g1', verdict: 'allow', host: 'a.test:443', for: 'session', by: ADA },
      },
    ]);
    await test.book.revoke(['g1'], ADA);
    expect([reached(test, 'a.test'), test.log]).toEqual([
      false,
      ['note grant g1', 'note revoke g1 revoked', 'recheck'],
    ]);
  });

  it('of a path is on the disk before the supervisor is told, and taken back by it', async () => {
    const test = new TestBook();
    await test.book.allow([file('write', test.at('out/new'))], 'session', ADA);
    await test.book.revoke('all', ADA);
    expect(test.log).toEqual([
      'note grant g1',
      'widen 1 write ~/out/new',
      'note revoke g1 revoked',
      'narrow 1',
      'recheck',
    ]);
  });

  it('that cannot be recorded does not act; one that cannot act is recorded as failed', async () => {
    const test = new TestBook();
    test.noteFails = true;
    for (const wanted of [net('a.test:443'), file('write', test.at('out/new'))])
      expect(await refusal(() => test.book.allow([wanted], 'session', ADA))).toContain('the disk is full');
    expect([test.log, reached(test, 'a.test')]).toEqual([[], false]);
    test.noteFails = false;
    test.widenFails = { errno: 18, message: 'another file system' };
    const said = await refusal(() => test.book.allow([file('write', test.at('out/new'))], 'session', ADA));
    expect(said).toMatch(/was recorded as g3 and could not be made to hold: another file system/);
    expect(test.entries.at(-1)).toMatchObject({ kind: 'revoke', data: { id: 'g3', reason: 'failed', errno: 18 } });
    expect(why(test.book.ruleset, { about: 'write', path: test.at('out/new') }).outcome).toBe('denied');
  });

  it('is ended also where its end cannot be recorded', async () => {
    const test = new TestBook();
    await test.book.allow([net('a.test:443'), file('write', test.at('out/new'))], 'session', ADA);
    test.noteFails = true;
    expect(await refusal(() => test.book.revoke('all', ADA))).toContain('the disk is full');
    expect([reached(test, 'a.test'), test.log.includes('narrow 2')]).toEqual([false, true]);
  });

  it.each([
    ['the wall’s clock', { wall: 600_000, monotonic: 0 }],
    ['the other one, when somebody sets the wall’s back', { wall: -5_000_000, monotonic: 600_000 }],
  ])('ends in time by %s', async (_what, { wall, monotonic }) => {
    const test = new TestBook();
    await test.book.allow([net('a.test:443')], 600_000, ADA);
    test.now = { wall: 1_000_000 + wall - 1, monotonic: Math.max(0, monotonic - 1) };
    expect(reached(test, 'a.test')).toBe(true);
    test.now = { wall: 1_000_000 + wall, monotonic };
    expect(reached(test, 'a.test')).toBe(false);
    await test.book.callEnded('x');
    expect(test.entries.at(-1)).toMatchObject({ kind: 'revoke', data: { id: 'g1', reason: 'expired' } });
    test.book.close();
  });

  it('for a call ends with the next call that ends, and is refused where none is seen', async () => {
    const test = new TestBook();
    await test.book.allow([net('a.test:443')], 'call', ADA);
    await test.book.allow([net('b.test:443')], 'session', ADA);
    expect(test.book.awaitsCall).toBe(true);
    // What ran already may be what asked, and others go on beside it.
    await test.book.callEnded('earlier');
    test.book.callBegan('next');
    await test.book.callEnded('earlier too');
    expect(reached(test, 'a.test')).toBe(true);
    await test.book.callEnded('next');
    expect([reached(test, 'a.test'), reached(test, 'b.test'), test.book.awaitsCall]).toEqual([false, true, false]);
    const alone = new TestBook({}, { seesCalls: false });
    expect(await refusal(() => alone.book.allow([net('a.test:443')], 'call', ADA))).toMatch(
      /no agent is attached.*--for 10m/,
    );
  });

  it('is the smallest: a folder only with what is in it, a name only where its folder is, a link never', async () => {
    const test = new TestBook();
    symlinkSync(test.at('out'), test.at('link'));
    writeFileSync(test.at('out/file'), '');
    const allow = (wanted: ReturnType<typeof file>) => refusal(() => test.book.allow([wanted], 'session', ADA));
    expect(await allow(file('write', test.at('out')))).toMatch(/is a folder.*--below/);
    expect(await allow(file('write', test.at('out/a/b')))).toMatch(/write --below .*out\/a$/);
    expect(await allow(file('write', test.at('link/x')))).toMatch(/leads to .*out\/x/);
    expect(await allow(file('read', test.at('none')))).toMatch(/is not there/);
    await test.book.allow(
      [file('write', test.at('out/file'), true), file('write', test.at('out'), true)],
      'session',
      ADA,
    );
    expect(test.log.filter((line) => line.startsWith('widen'))).toEqual([
      'widen 1 write ~/out/file',
      'widen 2 write ~/out below',
    ]);
  });
});

describe('what nobody may widen', () => {
  const team = { files: { write: { deny: ['~/out/held'] } }, network: { deny: ['evil.test', '*.evil.test'] } };

  it.each<[string, (test: TestBook) => ReturnType<typeof file>, RegExp]>([
    ['nd7’s own folder', (test) => file('read', test.at('.nd7'), true), /nd7’s own folder.*fixed/],
    ['what is in it', (test) => file('write', test.at('.nd7/policy.jsonc')), /nd7’s own folder/],
    ['what it lies in', (test) => file('read', test.at(), true), /nd7’s own folder/],
    ['the project’s policy', (test) => file('write', test.at('p/.nd7')), /fixed nd7, protect\.refuse: \.nd7/],
    [
      'a socket of nd7’s',
      (test) => ({ ...file('read', test.at('.nd7/sock')), right: 'socket' }),
      /is no socket|nd7’s own/,
    ],
    ['what a team denies of files', (test) => file('write', test.at('out/held')), /team, files\.write\.deny/],
    ['a folder that holds it', (test) => file('write', test.at('out'), true), /holds what stays closed: .*out\/held/],
    ['what a team denies of hosts', () => net('evil.test:443'), /team.*network\.deny: evil\.test/],
    ['the temporary folder', () => file('write', '/private/tmp/x'), /has .* to itself|is not there/],
    ['cloud metadata', () => net('169.254.169.254:80'), /never dialled/],
    ['link-local addresses', () => net('[fe80::1]:443'), /never dialled/],
  ])('%s is refused by its rule, and nothing is recorded', async (_what, wanted, said) => {
    const test = new TestBook({ team });
    expect(await refusal(() => test.book.allow([wanted(test)], 'session', ADA))).toMatch(said);
    expect(test.log).toEqual([]);
  });

  it('a project that only narrows is gone over by a person’s grant', async () => {
    const test = new TestBook({ project: { network: { only: ['github.com'], deny: ['a.test'] } } });
    await test.book.allow([net('a.test:443')], 'session', ADA);
    expect(reached(test, 'a.test')).toBe(true);
  });
});

describe('what is risky', () => {
  it.each<[string, (test: TestBook) => ReturnType<typeof file>, RegExp]>([
    ['every host', () => net('*:443'), /every host/],
    ['a whole domain', () => net('*.com:443'), /every name under \.com/],
    ['any protocol', () => ({ ...net('a.test:22'), raw: true }), /does not look at/],
    ['a service of this machine', () => net('localhost:9229'), /trusts its own users/],
    ['a secret', (test) => file('read', test.at('.ssh/id')), /among the secrets/],
    ['what runs later', (test) => file('write', test.at('p/.vscode/tasks.json')), /runs or trusts it later/],
    ['what a shell runs', (test) => file('write', test.at('.bashrc')), /runs or trusts it later/],
    ['settings of an agent', (test) => file('write', test.at('out/.claude/settings.json')), /runs or trusts it later/],
    ['programs', () => file('write', '/usr/local/bin/x'), /are run outside by their names/],
  ])('%s is told before it is granted', (_what, wanted, said) => {
    const test = new TestBook();
    writeFileSync(test.at('.ssh/id'), '');
    for (const folder of ['p/.vscode', 'out/.claude']) mkdirSync(test.at(folder));
    expect(test.book.risks([wanted(test)], 'session').join('\n')).toMatch(said);
  });

  it('one reason is told once', () => {
    const test = new TestBook();
    writeFileSync(test.at('p/.env'), '');
    expect(test.book.risks([file('read', test.at('p/.env'))], 'session')).toEqual([
      expect.stringMatching(/among the secrets that every profile hides \(masks: /),
    ]);
  });

  it('ordinary things are not', () => {
    const test = new TestBook();
    expect(test.book.risks([net('a.test:443'), file('write', test.at('out/x'))], 'session')).toEqual([]);
  });
});

describe('a denial', () => {
  it('closes a host whoever allows it, until it is lifted or the very host is granted', async () => {
    const test = new TestBook({ user: { network: { allow: ['a.test', '*.b.test'] } } });
    await test.book.allow([net('c.b.test:8443')], 'session', ADA);
    expect(reached(test, 'a.test')).toBe(true);
    await test.book.deny(net('a.test:*'), ADA);
    const { grants } = await test.book.deny(net('*.b.test:*'), ADA);
    expect([reached(test, 'a.test'), reached(test, 'c.b.test', 8443), reached(test, 'd.b.test')]).toEqual([
      false,
      false,
      false,
    ]);
    expect(grants.map(({ id, ended }) => [id, ended?.reason])).toEqual([['g1', 'denied']]);
    // A wider denial is named, the very same is the person's earlier word.
    expect(await refusal(() => test.book.allow([net('c.b.test:443')], 'session', ADA))).toMatch(
      /denied in this session \(d3.*nd7 revoke d3/,
    );
    await test.book.allow([net('a.test:443')], 'session', ADA);
    expect(reached(test, 'a.test')).toBe(true);
    await test.book.revoke(['d3'], ADA);
    expect(reached(test, 'd.b.test')).toBe(true);
  });

  it('of a port of this machine takes it out of what the policy allows', async () => {
    const test = new TestBook({ user: { network: { loopback: ['3000-3010'] } } });
    await test.book.deny(net('localhost:3005'), ADA);
    expect(test.book.network.loopback.map(({ from, to }) => [from, to])).toEqual([
      [3000, 3004],
      [3006, 3010],
    ]);
  });

  it('of a path ends grants below it, and the same is granted only over it', async () => {
    const test = new TestBook();
    await test.book.allow([file('write', test.at('out/x'))], 'session', ADA);
    await test.book.deny(file('write', test.at('out')), ADA);
    expect(test.log.slice(-3)).toEqual(['note revoke g1 denied', 'narrow 1', 'recheck']);
    expect(await refusal(() => test.book.allow([file('write', test.at('out/y'))], 'session', ADA))).toMatch(
      /denied in this session/,
    );
  });

  it('answers requests that it holds for; a grant answers those that it covers', async () => {
    const test = new TestBook();
    const decided: string[] = [];
    test.book.onDecided = ({ id, state }) => decided.push(`${id} ${state}`);
    const request = (id: string, wanted: Request['wanted']): Request => ({
      id,
      wanted,
      reason: '',
      by: { pid: 1, program: 'x' },
      made: new Date(0),
      state: 'pending',
    });
    test.book.requests.push(
      request('r1', net('a.test:443')),
      request('r2', file('write', test.at('out/x'))),
      request('r3', net('b.test:443')),
    );
    await test.book.allow([file('write', test.at('out'), true)], 'session', ADA);
    await test.book.deny(net('a.test:*'), ADA);
    await test.book.refuse(test.book.requests[2] as Request, ADA);
    expect(decided).toEqual(['r2 granted', 'r1 denied', 'r3 denied']);
  });
});
