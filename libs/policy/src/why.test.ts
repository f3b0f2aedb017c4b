import { compile } from './compile.js';
import { HOME, PROJECT, base, input, withUser } from './machine.fixture.js';
import { builtinPolicy } from './read.js';
import { readPolicy } from './read.js';
import { why } from './why.js';
import type { Question } from './why.js';

const told = (question: Question, ruleset = base) => {
  const { outcome, by, reason, source, instead } = why(ruleset, question);
  return {
    outcome,
    by,
    reason,
    from: source === null ? null : `${source.policy}: ${source.text}`,
    instead: instead.map(({ text }) => text),
  };
};

describe('why', () => {
  it('a secret is hidden', () => {
    expect(told({ about: 'read', path: `${HOME}/.aws/credentials` })).toEqual({
      outcome: 'denied',
      by: 'file',
      reason: `${HOME}/.aws/credentials is hidden`,
      from: 'secrets: files.read.deny: ~/.aws',
      instead: [
        `a person can allow it in their own policy: "${HOME}/.aws/credentials" in files.read.allow; in a session that lives: nd7 allow read ${HOME}/.aws/credentials`,
      ],
    });
  });

  it('a file elsewhere is not written, and where it could be', () => {
    expect(told({ about: 'write', path: '/etc/hosts' })).toEqual({
      outcome: 'denied',
      by: 'file',
      reason: '/etc/hosts may not be written',
      from: 'offline: files.write.deny: /',
      instead: [
        `${PROJECT} may be written`,
        'a person can allow it in their own policy: "/etc/hosts" in files.write.allow; in a session that lives: nd7 allow write /etc/hosts',
      ],
    });
  });

  it('a folder that the session has for itself is written, unless a rule names something in it', () => {
    const facts = { ownFolders: ['/var/tmp'] };
    const ask = (about: 'read' | 'write' | 'exec', path: string, ruleset = base) =>
      why(ruleset, { about, path }, facts);
    for (const about of ['read', 'write'] as const)
      expect(ask(about, '/var/tmp/x')).toMatchObject({
        outcome: 'allowed',
        reason: expect.stringMatching(/in tier T1, where \/var\/tmp is a folder of the session’s own/) as string,
      });
    expect(ask('exec', '/var/tmp/x').outcome).toBe('denied');
    expect(ask('write', '/var/tmpx').outcome).toBe('denied');
    expect(why(base, { about: 'write', path: '/var/tmp/x' }).outcome).toBe('denied');
    const named = withUser({ files: { read: { deny: ['/var/tmp/x'] } } });
    expect(ask('read', '/var/tmp/x/y', named).outcome).toBe('denied');
    expect(ask('write', '/var/tmp/x', { ...base, privateTmp: false }).outcome).toBe('denied');
  });

  it('something is not run, and where it could be', () => {
    expect(told({ about: 'exec', path: '/tmp/x' })).toMatchObject({
      outcome: 'denied',
      from: 'offline: files.exec.deny: $TMP',
      instead: [`programs in ${PROJECT} may be run`],
    });
  });

  it('a name is masked, and which are let out', () => {
    expect(told({ about: 'read', path: `${PROJECT}/a/.env` })).toMatchObject({
      outcome: 'denied',
      by: 'mask',
      from: 'secrets: masks: **/.env*',
      instead: expect.arrayContaining([
        'files that match **/*.example are let out of this mask',
        `a person can allow it in their own policy: "${PROJECT}/a/.env" in files.read.allow; in a session that lives: nd7 allow read ${PROJECT}/a/.env`,
      ]) as never,
    });
    expect(told({ about: 'read', path: `${PROJECT}/.env` }, base).outcome).toBe('denied');
    expect(why(base, { about: 'read', path: `${PROJECT}/.env` }, { tracked: () => true }).outcome).toBe('allowed');
  });

  it('a name is protected, and what would run it', () => {
    expect(told({ about: 'write', path: `${PROJECT}/.git/hooks/pre-commit` })).toEqual({
      outcome: 'denied',
      by: 'leaf',
      reason: `${PROJECT}/.git/hooks/pre-commit is protected (hooks): git runs it at the next commit`,
      from: 'offline: protect.refuse: git:hooks',
      instead: [
        `a person can allow it in their own policy: "${PROJECT}/.git/hooks/pre-commit" in files.write.allow; in a session that lives: nd7 allow write ${PROJECT}/.git/hooks/pre-commit`,
      ],
    });
    expect(told({ about: 'write', path: `${PROJECT}/.git/config` })).toMatchObject({ outcome: 'mediated', by: 'leaf' });
    expect(told({ about: 'write', path: `${PROJECT}/AGENTS.md` })).toMatchObject({
      outcome: 'recorded',
      reason: expect.stringContaining('instructions') as never,
    });
    expect(told({ about: 'read', path: `${PROJECT}/.git/hooks/pre-commit` })).toMatchObject({
      outcome: 'allowed',
      by: 'file',
    });
    expect(told({ about: 'write', path: `${PROJECT}/.nd7/policy.jsonc` })).toMatchObject({
      outcome: 'denied',
      instead: [],
    });
  });

  it('a host is reached or not, at which ports it would be', () => {
    expect(told({ about: 'host', authority: 'github.com' })).toMatchObject({
      outcome: 'allowed',
      reason: 'github.com:443 may be reached through the proxy, with TLS for this very name',
    });
    expect(told({ about: 'host', authority: 'GitHub.com:80' })).toEqual({
      outcome: 'denied',
      by: 'host',
      reason: 'no rule allows github.com:80',
      from: null,
      instead: [
        'github.com may be reached at port 22',
        'github.com may be reached at port 443',
        'a person can allow it in their own policy: "github.com:80" in network.allow; in a session that lives: nd7 allow net github.com:80',
      ],
    });
    for (const [authority, fault] of [
      ['evil\0.github.com', 'not-ldh'],
      ['github.com.', 'trailing-dot'],
      ['0x7f.1', 'odd-address'],
      ['github.com.:443', 'trailing-dot'],
      ['github.com:0', 'odd-address'],
      ['', 'empty'],
    ])
      expect([authority, told({ about: 'host', authority: authority as string })]).toEqual([
        authority,
        expect.objectContaining({
          outcome: 'denied',
          by: 'form',
          reason: expect.stringContaining(`(${fault})`) as never,
          instead: [],
        }),
      ]);
    expect(told({ about: 'host', authority: '[2001:db8::1]:443' }).reason).toBe('no rule allows [2001:db8::1]:443');
  });

  it('a team says no, and that no grant can change it', () => {
    const team = builtinPolicy('team', {
      nd7: 1,
      files: { read: { deny: ['~/code/secret'] } },
      network: { only: ['github.com'] },
      masks: ['**/*.key'],
      protect: { refuse: ['locked'] },
    });
    const ruleset = compile({ ...input, team }).ruleset;
    for (const question of [
      { about: 'read', path: `${HOME}/code/secret/x` },
      { about: 'write', path: `${HOME}/code/secret/x` },
      { about: 'read', path: `${PROJECT}/a.key` },
      { about: 'write', path: `${PROJECT}/locked` },
    ] as const) {
      const answer = told(question, ruleset);
      expect([
        question.path,
        answer.outcome,
        answer.from?.split(':')[0],
        answer.instead.filter((text) => text.includes('a person can')),
      ]).toEqual([question.path, 'denied', 'team', []]);
    }
    expect(told({ about: 'host', authority: 'pypi.org' }, ruleset)).toMatchObject({
      outcome: 'denied',
      by: 'bound',
      reason: 'pypi.org:443 is allowed, but not by the team policy team',
      instead: [],
    });
  });

  it('a rule is named with the line it stands on', () => {
    const user = readPolicy(
      '{\n  "nd7": 1,\n  "files": {"read": {"deny": [\n    "~/diary"\n  ]}}\n}',
      '/home/dev/.nd7/policy.jsonc',
      'user',
    );
    expect(why(compile({ ...input, user }).ruleset, { about: 'read', path: `${HOME}/diary/x` }).source).toEqual({
      layer: 'user',
      policy: 'user',
      file: '/home/dev/.nd7/policy.jsonc',
      line: 4,
      text: 'files.read.deny: ~/diary',
    });
  });

  it('sockets, ports and variables', () => {
    const ruleset = withUser({
      sockets: { allow: ['docker'] },
      network: { listen: ['3000-3010'], loopback: [5432] },
      environment: { pass: ['GITHUB_TOKEN'] },
    });
    expect(told({ about: 'socket', path: '/run/docker.sock' }, ruleset)).toMatchObject({
      outcome: 'allowed',
      reason: expect.stringContaining('root on this machine') as never,
    });
    expect(told({ about: 'socket', path: '/run/user/1000/bus' }, ruleset)).toMatchObject({
      outcome: 'denied',
      instead: [
        'a person can allow it in their own policy: "/run/user/1000/bus" in sockets.allow; in a session that lives: nd7 allow socket /run/user/1000/bus',
      ],
    });
    expect([3000, 3010, 3011].map((port) => told({ about: 'listen', port }, ruleset).outcome)).toEqual([
      'allowed',
      'allowed',
      'denied',
    ]);
    expect([5432, 5433].map((port) => told({ about: 'loopback', port }, ruleset).outcome)).toEqual([
      'allowed',
      'denied',
    ]);
    // As the proxy does: this machine's own services are granted by their port, whatever hosts are listed.
    expect(
      ['localhost:5432', '127.0.0.1:5432', '[::1]:5432', 'localhost:5433'].map((authority) => {
        const { outcome, instead } = told({ about: 'host', authority }, ruleset);
        return [outcome, instead];
      }),
    ).toEqual([
      ...Array<unknown>(3).fill(['allowed', []]),
      [
        'denied',
        [
          'a person can allow it in their own policy: "5433" in network.loopback; in a session that lives: nd7 allow net localhost:5433',
        ],
      ],
    ]);
    expect(told({ about: 'variable', name: 'GITHUB_TOKEN' }, ruleset)).toMatchObject({
      outcome: 'allowed',
      from: 'user: environment.pass: GITHUB_TOKEN',
    });
    expect(told({ about: 'variable', name: 'NPM_TOKEN' }, ruleset)).toMatchObject({
      outcome: 'denied',
      from: 'secrets: environment.unset: *TOKEN',
    });
    expect(told({ about: 'variable', name: 'TMPDIR' }, ruleset)).toMatchObject({
      outcome: 'allowed',
      reason: 'TMPDIR is set inside',
    });
  });

  it('what is no path is refused as such', () => {
    for (const path of ['', 'x', '/a/../b', '/a//b', '/a/', './x', '~/x', '/a\0b', `/${'a/'.repeat(4_000)}b`]) {
      expect(told({ about: 'read', path })).toMatchObject({ outcome: 'denied', by: 'form' });
      expect(told({ about: 'socket', path })).toMatchObject({ outcome: 'denied', by: 'form' });
    }
  });
});
