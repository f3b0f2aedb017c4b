// What is asked through the door: written down, put to the person, answered; never more.
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Answer } from '../recorder/frames.js';
import { parseAsk, type AskLine } from './ask-line.js';
import { Asks } from './asks.js';
import { ADA, file, net, removeMade, TestBook } from './book.fixture.js';
import type { Request } from './entry.js';

afterEach(removeMade);

class TestAsks {
  readonly test = new TestBook({
    team: { network: { deny: ['evil.test'] } },
    user: { network: { allow: ['open.test'] } },
  });
  readonly told: Request[] = [];
  readonly said: Record<string, unknown>[] = [];
  /** Answers for which nobody waited. */
  readonly unheard: string[] = [];
  readonly asks = new Asks({
    policies: this.test.policies,
    book: this.test.book,
    facts: {},
    note: (kind, data, _what, source) => Promise.resolve(void this.said.push({ kind, source, ...data })),
    tell: (request) => this.told.push(request),
    decided: ({ id, state }) => this.unheard.push(`${id} ${state}`),
  });

  async ask(
    words: string[],
    gone: Promise<void> = new Promise(() => undefined),
    cwd = this.test.project,
  ): Promise<Answer> {
    const payload = Buffer.from(words.map((word) => `${word}\0`).join(''));
    const frame = { op: 'ask', meta: new Map([['cwd', cwd]]), payload };
    const answer = await this.asks.answer(frame, { pid: process.pid, uid: 0, gid: 0 }, gone);
    if (answer === undefined) throw new Error('not taken');
    return answer;
  }
}

describe('nd7 ask', () => {
  it('is an intent entry and a request, with the smallest that would do, and widens nothing', async () => {
    const one = new TestAsks();
    const before = JSON.stringify(one.test.book.ruleset);
    expect(await one.ask(['ask', '--reason', 'a\n  long\tline', 'write', '../out/new/deep/x'])).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('put to the person') as string,
    });
    expect(one.said).toMatchObject([
      { kind: 'permission.asked', source: 'intent:ask', path: one.test.at('out/new/deep/x'), reason: 'a long line' },
    ]);
    expect(one.told.map(({ wanted }) => wanted)).toEqual([file('write', one.test.at('out/new'), true)]);
    expect([JSON.stringify(one.test.book.ruleset), one.test.log]).toEqual([before, []]);
  });

  it('waits until somebody decides', async () => {
    const one = new TestAsks();
    const wait = (host: string) =>
      one
        .ask(['ask', '--wait', '--json', 'net', host])
        .then(({ exit, stdout }) => [exit, (JSON.parse(stdout) as { state: string }).state]);
    const [a, b] = [wait('a.test'), wait('b.test')];
    while (one.told.length < 2) await new Promise((done) => setTimeout(done, 1));
    await one.test.book.allow([net('*.test:443')], 'session', ADA).catch(() => undefined);
    await one.test.book.allow([net('a.test:443')], 'session', ADA);
    expect(await a).toEqual([0, 'granted']);
    const [, request] = one.test.book.requests;
    if (request?.state === 'pending') await one.test.book.refuse(request, ADA);
    expect((await b)[0]).toBe(request?.state === 'granted' ? 0 : 1);
    expect(await wait('a.test')).toEqual([0, 'granted']);
  });

  it('ends its wait when the time is over, and when who asked has gone', async () => {
    const one = new TestAsks();
    expect(await one.ask(['ask', '--wait', '--timeout', '1s', 'net', 'a.test'])).toMatchObject({
      exit: 1,
      stdout: expect.stringContaining('not been decided') as string,
    });
    expect(await one.ask(['ask', '--wait', 'net', 'a.test'], Promise.resolve())).toMatchObject({ exit: 1 });
    // The same once more is the same request.
    expect([one.told.length, one.said.length]).toEqual([1, 2]);
  });

  it('is answered at once where nobody is needed', async () => {
    const one = new TestAsks();
    writeFileSync(one.test.at('p/x'), '');
    expect(await one.ask(['ask', 'write', 'x'])).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('it is allowed') as string,
    });
    expect(await one.ask(['ask', 'net', 'open.test'])).toMatchObject({ exit: 0 });
    for (const [right, what] of [
      ['net', 'evil.test'],
      ['read', one.test.at('.nd7/keys')],
      ['net', '169.254.169.254'],
      ['write', '.nd7'],
    ])
      expect(await one.ask(['ask', right as string, what as string])).toMatchObject({
        exit: 1,
        stdout: expect.stringMatching(/is denied: .*cannot be granted/) as string,
      });
    expect([one.told, one.said.length]).toEqual([[], 6]);
  });

  it('that was refused stays refused, without the person', async () => {
    const one = new TestAsks();
    await one.ask(['ask', 'net', 'a.test']);
    await one.test.book.refuse(one.test.book.requests[0] as Request, ADA);
    expect(one.unheard).toEqual(['r1 denied']);
    expect(await one.ask(['ask', 'net', 'a.test'])).toMatchObject({
      exit: 1,
      stdout: expect.stringContaining('is denied') as string,
    });
    expect(one.told).toHaveLength(1);
  });

  it('comes no more often than a person reads', async () => {
    const one = new TestAsks();
    const exits: number[] = [];
    for (let i = 0; i < 30; i++) exits.push((await one.ask(['ask', 'net', `h${i}.test`])).exit);
    expect(exits.filter((exit) => exit === 0).length).toBeLessThanOrEqual(11);
    expect([one.told.length, one.said.length]).toEqual([exits.filter((exit) => exit === 0).length, one.told.length]);
    expect(one.asks.turnedAway).toBeGreaterThanOrEqual(19);
  });

  it('why names the rule, what is open, and how to ask', async () => {
    const one = new TestAsks();
    const { exit, stdout } = await one.ask(['why', 'a.test:8443']);
    expect([exit, stdout.split('\n')[0]]).toEqual([0, 'denied  no rule allows a.test:8443']);
    expect(stdout).toContain('/run/nd7/nd7 ask net a.test:8443');
    expect((await one.ask(['why', './x'])).stdout).toMatch(/^allowed /);
    // A path alone may be a program.
    expect((await one.ask(['why', '/private/tmp/tool'])).stdout).toMatch(
      /^allowed {2}\/private\/tmp\/tool may be written\n.*\ndenied {2}\/private\/tmp\/tool may not be run\nrule: .*\ninstead: programs in .* may be run\n$/,
    );
    expect((await one.ask(['why', 'write', '/private/tmp/tool'])).stdout).not.toContain('run');
    expect((await one.ask(['why', 'read', one.test.at('.ssh/id')])).stdout).toMatch(
      /^denied .*\nrule: files\.read\.deny: .*\(profile secrets\)/,
    );
  });

  it.each([
    [['allow', 'net', 'a']],
    [['ask', 'net']],
    [['ask', 'exec', 'x']],
    [['ask', '--nope', 'net', 'a']],
    [['ask', 'net', 'a', 'b']],
    [['ask', '--timeout', 'x', 'net', 'a']],
    [['ask', 'net', 'a b']],
    [['ask', '--reason']],
  ])('%j is a mistake, and nothing is asked', async (words) => {
    const one = new TestAsks();
    expect(await one.ask(words)).toMatchObject({ exit: 2, stdout: '' });
    expect([one.told, one.said]).toEqual([[], []]);
  });

  it('what comes is never shown as it came, and no line breaks the reader', async () => {
    const word = fc.oneof(
      fc.constantFrom(
        'ask',
        'why',
        '--wait',
        '--reason',
        '--timeout',
        '1s',
        '--',
        'net',
        'read',
        'write',
        'socket',
        '--json',
      ),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('\u001b[2J', '\u202e', '/a/../b'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 6 }), async (words) => {
        let line: AskLine | undefined;
        try {
          line = parseAsk(words.map((one) => `${one}\0`).join(''));
        } catch {
          // said in one message
        }
        const one = new TestAsks();
        const { stdout, stderr, exit } = await one.ask(words, Promise.resolve());
        expect([0, 1, 2]).toContain(exit);
        if (line === undefined) expect(exit).toBe(2);
        expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
        removeMade();
      }),
      { numRuns: 100 },
    );
  }, 60_000);
});
