// What is learned, from observations made by hand: the profile covers them, has nothing that nobody asked for, and holds back what is somebody's to decide.
import fc from 'fast-check';
import { compile } from '../compile.js';
import { accessAt, decideHost } from '../decide.js';
import { PolicyDocument } from '../document.js';
import { PolicyError } from '../failure.js';
import { HOME, input, PROJECT, reached, rights } from '../machine.fixture.js';
import { builtinPolicy, readPolicy } from '../read.js';
import type { Ruleset } from '../ruleset.js';
import { learn } from './learn.js';
import { gathered } from './paths.js';
import type { LearnInput, Learnt, Seen } from './seen.js';
import { profileText } from './text.js';

const saw = (what: Seen['what'], path: string, more: Partial<Seen> = {}): Seen => ({
  what,
  path,
  said: path,
  program: 'tool',
  ...more,
});
const asked = (seen: Seen[], more: Partial<LearnInput> = {}): LearnInput => ({
  policies: input,
  seen,
  hosts: [],
  refused: [],
  ownPorts: [3128],
  include: [],
  facts: {
    kindOf: (path) => (path.endsWith('.sock') || path.endsWith('agent.1') ? 'socket' : 'file'),
    linksOn: () => [],
    interpreterOf: () => undefined,
    tracked: () => false,
  },
  ...more,
});
const compiled = ({ document }: Learnt): Ruleset =>
  compile({
    ...input,
    session: { ...input.session, profile: './profiles/l.jsonc' },
    files: new Map([['./profiles/l.jsonc', builtinPolicy('./profiles/l.jsonc', document)]]),
  }).ruleset;
const items = ({ held }: Learnt): string[] => held.map(({ item }) => item);

describe('a learned profile', () => {
  it('of a command that does nothing has no host, no writable project and no home folder', () => {
    const ruleset = compiled(learn(asked([])));
    expect(rights(ruleset, `${PROJECT}/x`)).toBe('r--');
    expect(rights(ruleset, `${HOME}/notes`)).toBe('---');
    expect(rights(ruleset, '/srv/data')).toBe('---');
    expect(rights(ruleset, '/usr/bin/env')).toBe('r-x');
    expect(ruleset.network.hosts).toEqual([]);
    expect(ruleset.leaves.length).toBeGreaterThan(0);
    expect(ruleset.required.map(({ property }) => property)).toContain('files.leaves');
  });

  it('covers what was done, takes packs for what they hold, and folders for many things side by side', () => {
    const learnt = learn(
      asked(
        [
          saw('read', `${HOME}/.gitconfig`),
          saw('write', `${PROJECT}/out/a`),
          saw('exec', `${PROJECT}/out/a`),
          saw('write', `${HOME}/.npm/_cacache/x`),
          ...['a', 'b', 'c', 'd'].map((name) => saw('read', `${HOME}/.tool/lib/${name}`)),
          saw('exec', `${HOME}/.tool/bin/t`),
          saw('read', `${HOME}/.other/x.so.1`),
          saw('look', `${HOME}/.looked`),
          saw('read', '/srv/data/one'),
          saw('read', '/proc/self/maps'),
          saw('write', '/tmp/x'),
        ],
        {
          hosts: [
            { host: 'registry.npmjs.org', port: 443, allowed: true, reason: null },
            { host: 'docs.example.com', port: 8443, allowed: true, reason: null },
          ],
        },
      ),
    );
    expect(learnt.held).toEqual([]);
    expect(learnt.document).toEqual({
      nd7: 1,
      extends: ['offline', 'npm'],
      files: {
        read: {
          allow: ['~/.gitconfig', '~/.looked', '~/.other/x.so.1', '~/.tool/bin/t', '~/.tool/lib', '/srv/data/one'],
          deny: ['~', '/data', '/media', '/mnt', '/opt', '/srv', '/var'],
        },
        exec: { allow: ['~/.other/x.so.1', '~/.tool/bin/t'], deny: ['~'] },
      },
      network: { allow: ['docs.example.com:8443'] },
    });
    const ruleset = compiled(learnt);
    expect(rights(ruleset, `${PROJECT}/out/a`)).toBe('rwx');
    expect(rights(ruleset, `${HOME}/.tool/lib/e`)).toBe('r--');
    expect(reached(ruleset, 'registry.npmjs.org')).toBe(true);
    expect(reached(ruleset, 'docs.example.com')).toBe(false);
  });

  it('holds back secrets, agents and settings, sockets, services of this machine, addresses and wildcards, and says why', () => {
    const learnt = learn(
      asked(
        [
          saw('read', '', { said: `${HOME}/.ssh/id` }),
          saw('read', `${PROJECT}/.env`),
          saw('write', `${HOME}/.bashrc`),
          saw('write', `${HOME}/other/project/x`),
          saw('list', HOME),
          saw('socket', '', { said: '/run/docker.sock' }),
          saw('socket', '/tmp/ssh-x/agent.1', { said: '/tmp/ssh-x/agent.1' }),
          saw('dial', '127.0.0.1:5432'),
          saw('dial', '127.0.0.1:3128'),
          saw('dial', '127.0.0.1:8000'),
          saw('bind', '127.0.0.1:8000'),
          saw('make-folder', '', { said: `${HOME}/.cache/newtool` }),
        ],
        {
          refused: [{ path: `${PROJECT}/.vscode/settings.json`, because: 'an editor runs it' }],
          hosts: [
            ...['a', 'b', 'c', 'd'].map((n) => ({
              host: `${n}.cdn.example.com`,
              port: 443,
              allowed: true,
              reason: null,
            })),
            { host: '192.0.2.1', port: 443, allowed: false, reason: 'no-rule' },
            { host: 'intern.example.com', port: 443, allowed: false, reason: 'address' },
            { host: 'ssh.example.com', port: 22, allowed: true, reason: null },
            { host: 'ssh.example.com', port: 22, allowed: false, reason: 'not-tls' },
          ],
        },
      ),
    );
    expect(items(learnt)).toEqual([
      'host:*.cdn.example.com',
      'host:192.0.2.1',
      'loopback:5432',
      'private:intern.example.com',
      'raw:ssh.example.com:22',
      'read:./.env',
      'read:~',
      'read:~/.ssh/id',
      'socket:docker',
      'socket:ssh-agent',
      'write:./.vscode/settings.json',
      'write:~/.bashrc',
      'write:~/other/project/x',
    ]);
    expect(learnt.held.find(({ item }) => item === 'socket:docker')?.why).toMatch(/root on this machine/);
    expect(learnt.held.find(({ item }) => item === 'read:~/.ssh/id')?.why).toBe(
      'hidden by "files.read.deny: ~/.ssh" (secrets)',
    );
    expect(learnt.widened).toEqual(['~/.cache/newtool']);
    expect(learnt.document.makeFolders).toEqual(['~/.cache/newtool']);
    const ruleset = compiled(learnt);
    expect(rights(ruleset, `${HOME}/.ssh/id_ed25519`)).toBe('---');
    expect(rights(ruleset, `${HOME}/.bashrc`)).toBe('---');
    expect(ruleset.sockets).toEqual([]);
    expect(reached(ruleset, 'b.cdn.example.com')).toBe(true);
    expect(reached(ruleset, 'e.cdn.example.com')).toBe(false);
    expect(reached(ruleset, 'ssh.example.com', 22)).toBe(false);
  });

  it('takes in what somebody includes, and that is held back no longer', () => {
    const seen = [
      saw('read', '', { said: `${HOME}/.ssh/known_hosts` }),
      saw('socket', '', { said: '/run/docker.sock' }),
    ];
    const include = [
      'read:~/.ssh/known_hosts',
      'socket:docker',
      'raw:ssh.example.com:22',
      'loopback:5432',
      'write:./.vscode/x.json',
    ];
    const learnt = learn(asked(seen, { include }));
    expect(items(learnt)).toEqual([]);
    const ruleset = compiled(learnt);
    expect(rights(ruleset, `${HOME}/.ssh/known_hosts`)).toBe('r--');
    expect(rights(ruleset, `${HOME}/.ssh/id`)).toBe('---');
    expect(ruleset.sockets.map(({ name }) => name)).toContain('docker');
    expect(decideHost(ruleset.network, { kind: 'name', host: 'ssh.example.com' }, 22)).toMatchObject({
      allow: true,
      raw: true,
    });
    expect(ruleset.network.loopback).toMatchObject([{ from: 5432, to: 5432 }]);
    for (const item of ['', 'read:', 'read:x', 'nothing:x', 'host:a b', 'loopback:x', 'read:~/../x', 'write:/a*'])
      expect(() => learn(asked([], { include: [item] }))).toThrow(PolicyError);
  });

  it('shows the folder of a link that was followed, and runs what a script names', () => {
    const facts = {
      ...asked([]).facts,
      linksOn: (path: string) => (path === `${HOME}/.tool/bin/run` ? [path] : []),
      interpreterOf: (path: string) => (path === `${HOME}/.real/run` ? `${HOME}/.py/bin/python` : undefined),
    };
    const learnt = learn(asked([saw('exec', `${HOME}/.real/run`, { said: `${HOME}/.tool/bin/run` })], { facts }));
    expect(learnt.document.files?.read?.allow).toEqual(['~/.py/bin/python', '~/.real/run', '~/.tool/bin']);
    expect(learnt.document.files?.exec?.allow).toEqual(['~/.py/bin/python', '~/.real/run']);
  });

  it('does not let hostile names into the file as anything but names', () => {
    const evil = `${HOME}/.x/a"\n], "network": {"allow": ["x.test"]}, "a":"`;
    const learnt = learn(
      asked([
        saw('read', evil),
        saw('write', `${HOME}/.y\n"*`),
        saw('read', `${HOME}/.z/*/b`),
        saw('read', `${HOME}/.q/\ufffd`),
      ]),
    );
    const text = profileText(learnt.document, learnt.held, 'x\n{}');
    const { document } = readPolicy(text, 'f', 'f');
    expect(document).toEqual(learnt.document);
    expect(document.network).toBeUndefined();
    expect(document.files?.read?.allow).toEqual(['~/.q', evil.replace(HOME, '~'), '~/.z']);
  });

  it('writes what is not seen in a name as its number, and the name stays what it is', () => {
    const evil = `${HOME}/.x/a\u202e\u2066b\u009b31m\u200b\u{e0041}\u2028\n# c`;
    const learnt = learn(asked([saw('read', evil), saw('read', `${HOME}/.ssh/\u202e\u009b`)]));
    const text = profileText(learnt.document, learnt.held, 'x\u202e');
    expect(text).not.toMatch(/[\p{Cf}\u2028\u0080-\u009f]/u);
    expect(readPolicy(text, 'f', 'f').document.files?.read?.allow).toEqual([evil.replace(HOME, '~')]);
  });

  it('is the same in whatever order things were seen, is a policy, and allows all that was seen and not held back', () => {
    const name = fc.constantFrom('a', 'b', 'c', '.d', '.ssh', '.cache', 'x.so', '.env', 'node_modules');
    const where = fc.constantFrom(
      HOME,
      PROJECT,
      '/srv',
      '/usr/lib',
      '/opt/t',
      `${HOME}/.npm`,
      `${HOME}/.config`,
      `${HOME}/code`,
    );
    const path = fc.tuple(where, fc.array(name, { maxLength: 3 })).map(([base, names]) => [base, ...names].join('/'));
    const kind = fc.constantFrom<Seen['what']>('read', 'list', 'look', 'write', 'make-folder', 'exec');
    const one = fc.tuple(kind, path).map(([what, at]) => saw(what, at));
    fc.assert(
      fc.property(fc.array(one, { maxLength: 30 }), fc.integer(), (seen, n) => {
        const learnt = learn(asked(seen));
        const at = seen.length === 0 ? 0 : Math.abs(n) % seen.length;
        expect(learn(asked([...seen.slice(at).reverse(), ...seen.slice(0, at), ...seen]))).toEqual(learnt);
        expect(PolicyDocument.safeParse(learnt.document).success).toBe(true);
        const ruleset = compiled(learnt);
        const isHeld = (right: string, said: string): boolean =>
          items(learnt).includes(`${right}:${said.replace(PROJECT, '.').replace(HOME, '~')}`);
        for (const { what, path: said } of seen) {
          const access = accessAt(ruleset, said);
          const right = what === 'exec' ? 'exec' : what === 'write' || what === 'make-folder' ? 'write' : 'read';
          if (what === 'look') continue;
          if (!access[right]) expect([right, said, isHeld(right, said)]).toEqual([right, said, true]);
        }
        // Nothing that the profile in force hides comes open by itself.
        for (const secret of [`${HOME}/.ssh/id`, `${HOME}/.aws/credentials`, `${PROJECT}/.env`, `${HOME}/.nd7/x`])
          expect(accessAt(ruleset, secret).read).toBe(false);
      }),
    );
  });
});

describe('paths that are gathered', () => {
  it('are the fewest, hold all, and never a folder that is too wide', () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1, maxLength: 4 })
      .map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(fc.array(path, { maxLength: 40 }), (paths) => {
        const wide = (at: string): boolean => at === '/' || at === '/a';
        const found = gathered(paths, wide);
        for (const one of paths) expect(found.some((root) => one === root || one.startsWith(`${root}/`))).toBe(true);
        for (const one of found) {
          expect(found.some((other) => other !== one && one.startsWith(`${other}/`))).toBe(false);
          expect(wide(one) && !paths.includes(one)).toBe(false);
        }
      }),
    );
  });
});
