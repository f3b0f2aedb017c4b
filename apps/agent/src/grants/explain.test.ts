import type { EgressDecision } from '@nd7/egress';
import { file, net, removeMade, TestBook, ADA } from './book.fixture.js';
import { Refusals, speaksOfRefusal } from './explain.js';

afterEach(removeMade);

const refusedHost = (host: string): EgressDecision => ({
  via: 'connect',
  host,
  port: 443,
  verdict: 'deny',
  reason: 'no-rule',
  source: null,
  addresses: [],
});

describe('what the model is told of refusals', () => {
  it('names the rule, who refused, what is open, and how to ask; each once', () => {
    const test = new TestBook();
    const refusals = new Refusals(
      () => test.book.ruleset,
      () => test.book.extent,
    );
    for (let i = 0; i < 3; i++) refusals.host(refusedHost('a.test'));
    const leaf = test.book.ruleset.leaves.find(({ pattern }) => pattern === '.vscode');
    refusals.name(test.at('p/.vscode'), 'mkdir', leaf?.source ?? null);
    refusals.output(
      `sh: 1: cannot create ${test.at('out/x')}: Read-only file system\ncat: ${test.at('.ssh/id')}: Permission denied\nls: /nothing/here: No such file`,
    );
    const text = refusals.take() ?? '';
    expect(text).toContain('the proxy refused a.test:443 (no-rule)');
    expect(text).toContain('/run/nd7/nd7 ask net a.test:443');
    expect(text).toContain(`table of names refused mkdir of ${test.at('p/.vscode')}, by protect.refuse: .vscode`);
    expect(text).toContain(`the mount view refuses to write ${test.at('out/x')}`);
    expect(text).toContain(`instead: ${test.project} may be written`);
    expect(text).toMatch(/the mount view refuses to read .*\.ssh\/id\n.*rule: files\.read\.deny/);
    expect(text).not.toContain('/nothing/here');
    expect(text.match(/a\.test:443 \(no-rule\)/g)).toHaveLength(1);
    refusals.host(refusedHost('a.test'));
    expect(refusals.take()).toBeUndefined();
    refusals.forget();
    refusals.host(refusedHost('a.test'));
    expect(refusals.take()).toContain('the proxy refused a.test:443');
  });

  it('is short, and holds no control character of what was named', () => {
    const test = new TestBook();
    const refusals = new Refusals(
      () => test.book.ruleset,
      () => test.book.extent,
    );
    for (let i = 0; i < 500; i++) refusals.name(test.at(`out/\u001b[2J${'x'.repeat(3_000)}${i}`), 'open', null);
    const text = refusals.take() ?? '';
    expect(text.length).toBeLessThanOrEqual(1_901);
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
  });

  it('says of a program that lies where none is run where it would be, and nothing of asking: nobody grants that', () => {
    const test = new TestBook();
    const refusals = new Refusals(
      () => test.book.ruleset,
      () => test.book.extent,
    );
    for (let i = 0; i < 2; i++) refusals.output('sh: 1: /private/tmp/tool: Permission denied');
    expect(refusals.take()).toMatch(
      new RegExp(
        `- the boundary does not run /private/tmp/tool\\n +rule: files\\.exec\\.deny: \\$TMP .*\\n +instead: programs in ${test.project} may be run$`,
      ),
    );
    refusals.output(`sh: 1: ${test.project}/tool: Permission denied`);
    expect(refusals.take()).toBeUndefined();
  });

  it('brings the answers of a person for which nobody waited', () => {
    const test = new TestBook();
    const refusals = new Refusals(
      () => test.book.ruleset,
      () => test.book.extent,
    );
    refusals.decided({
      id: 'r1',
      wanted: net('a.test:443'),
      reason: '',
      by: { pid: 1, program: 'x' },
      made: new Date(0),
      state: 'granted',
    });
    expect(refusals.take()).toBe('nd7: r1 (net a.test:443) was granted by the person');
  });

  it('says nothing of what the rules allow', async () => {
    const test = new TestBook();
    const refusals = new Refusals(
      () => test.book.ruleset,
      () => test.book.extent,
    );
    await test.book.allow([file('write', test.at('out'), true), net('a.test:443')], 'session', ADA);
    refusals.output(`touch: ${test.at('out/x')}: Read-only file system`);
    expect(refusals.take()).toBeUndefined();
  });

  it.each(['EROFS: read-only file system', 'Permission denied', 'EACCES', 'Read-only file system'])(
    '%s is looked for',
    (text) => {
      expect([speaksOfRefusal(Buffer.from(text)), speaksOfRefusal(Buffer.from('fine'))]).toEqual([true, false]);
    },
  );
});
