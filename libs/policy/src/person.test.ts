import { compile } from './compile.js';
import type { PolicyDocument } from './document.js';
import { environmentInside } from './environment.js';
import { leafAt } from './names.js';
import { builtinPolicy } from './read.js';

import { HOME, PROJECT, input, reached, rights, withUser } from './machine.fixture.js';

describe('a person’s own policy', () => {
  it('absent means the default profile; with nothing extended everything is denied', () => {
    expect(rights(withUser({}), PROJECT)).toBe('rwx');
    const nothing = withUser({ extends: [] });
    expect([rights(nothing, '/'), rights(nothing, PROJECT), reached(nothing, 'github.com')]).toEqual([
      '---',
      '---',
      false,
    ]);
  });

  it('nests deny in allow in deny, to any depth', () => {
    const nested = withUser({
      files: {
        read: { deny: ['~/code'], allow: ['~/code/lib', '~/code/lib/keys/public'] },
        write: { deny: ['./vendor'], allow: ['./vendor/ours'] },
      },
    });
    expect(
      ['', '/lib', '/lib/keys', '/lib/keys/public', '/app', '/app/vendor', '/app/vendor/ours/x'].map((path) =>
        rights(nested, `${HOME}/code${path}`),
      ),
    ).toEqual(['---', 'r-x', 'r-x', 'r-x', 'rwx', 'r-x', 'rwx']);
  });

  it('says otherwise than a profile of the very same path, not by allowing what lies above', () => {
    expect(rights(withUser({ files: { read: { allow: ['~'] } } }), `${HOME}/.ssh/id`)).toBe('---');
    expect(rights(withUser({ files: { read: { allow: ['~/.ssh'] } } }), `${HOME}/.ssh/config`)).toBe('r-x');
  });

  it('lets a masked name out by naming it, and only it', () => {
    const named = withUser({ files: { read: { allow: ['./.env.test'] } } });
    expect([
      rights(named, `${PROJECT}/.env.test`),
      rights(named, `${PROJECT}/.env`),
      rights(named, `${PROJECT}/a/.env.test`),
    ]).toEqual(['rwx', '---', '---']);
    const masked = withUser({ masks: ['**/*.pem'], files: { read: { allow: ['./public.pem'] } } });
    expect([rights(masked, `${PROJECT}/a.pem`), rights(masked, `${PROJECT}/public.pem`)]).toEqual(['---', 'rwx']);
  });

  it('lets a protected name out by naming it for writing, or releases it everywhere', () => {
    const named = withUser({ files: { write: { allow: ['./.vscode/settings.json'] } } });
    expect(leafAt(named.leaves, `${PROJECT}/.vscode/settings.json`)).toBeUndefined();
    expect(leafAt(named.leaves, `${PROJECT}/.vscode/tasks.json`)?.treatment).toBe('refuse');
    const released = withUser({ protect: { release: ['.vscode', '.nd7'] } });
    expect(leafAt(released.leaves, `${PROJECT}/a/.vscode/tasks.json`)).toBeUndefined();
    expect(leafAt(released.leaves, `${PROJECT}/.nd7/policy.jsonc`)?.treatment).toBe('refuse');
  });

  it('protects names in every folder that it makes writable', () => {
    const more = withUser({ files: { write: { allow: ['~/other'] } } });
    expect(leafAt(more.leaves, `${HOME}/other/.git/hooks/x`)?.treatment).toBe('refuse');
    expect(leafAt(more.leaves, `${HOME}/.npm/x/.vscode`)).toBeUndefined();
  });

  it('passes a variable by its name, against a pattern that would hold it back', () => {
    const { environment } = withUser({
      environment: { pass: ['GITHUB_TOKEN', 'KUBECONFIG', 'MY_*'], set: { CACHE: '$TMP/c', PLAIN: 'a$b' } },
    });
    const inside = environmentInside(environment, {
      GITHUB_TOKEN: 'x',
      KUBECONFIG: 'y',
      MY_TOKEN: 'z',
      NPM_TOKEN: 'w',
    });
    expect(inside).toMatchObject({ GITHUB_TOKEN: 'x', KUBECONFIG: 'y', CACHE: '/tmp/c', PLAIN: 'a$b' });
    expect(inside).not.toHaveProperty('MY_TOKEN');
    expect(inside).not.toHaveProperty('NPM_TOKEN');
  });

  it('grants sockets by name, with the warning, and where this machine has them', () => {
    const { sockets } = withUser({ sockets: { allow: ['ssh-agent', 'docker', '~/x.sock'] } });
    expect(sockets.map(({ path, name }) => [path, name])).toEqual([
      [`${HOME}/x.sock`, '~/x.sock'],
      ['/run/docker.sock', 'docker'],
      ['/tmp/ssh-x/agent.1', 'ssh-agent'],
      ['/var/run/docker.sock', 'docker'],
    ]);
    expect(sockets.find(({ name }) => name === 'docker')?.warning).toMatch(/root on this machine/);
    expect(() => withUser({ sockets: { allow: ['dokcer'] } })).toThrow(/no socket is called "dokcer"/);
    expect(withUser({ sockets: { allow: ['podman'] } }).sockets.map(({ path }) => path)).toEqual([
      '/run/user/1000/podman/podman.sock',
    ]);
    expect(
      withUser({ sockets: { allow: ['podman', 'ssh-agent'] } }, { places: { ...input.places, variables: {} } }).sockets,
    ).toEqual([]);
  });

  it('is told when it allows more than it may mean', () => {
    const { notes } = compile({
      ...input,
      user: builtinPolicy('user', {
        nd7: 1,
        files: { write: { allow: ['~'] } },
        network: { allow: ['*', '*.com'] },
        sockets: { allow: ['docker'] },
      }),
    });
    expect(notes.map(({ text }) => text)).toEqual([
      `all of ${HOME} is writable`,
      'every host may be reached',
      'every name under .com may be reached',
      expect.stringMatching(/^docker: /),
      expect.stringMatching(/^docker: /),
    ]);
  });

  it('holds credentials outside, for exact names and headers that carry them', () => {
    const rule = {
      name: 'api',
      hosts: ['API.anthropic.com'],
      way: 'endpoint' as const,
      header: 'X-Api-Key',
      value: '{}',
      endpointVariable: 'ANTHROPIC_BASE_URL',
      from: { file: '~/.secrets/key' },
    };
    expect(withUser({ credentials: [rule] }).network.credentials).toEqual([
      expect.objectContaining({
        hosts: ['api.anthropic.com'],
        header: 'x-api-key',
        value: '{}',
        from: { file: `${HOME}/.secrets/key` },
        placeholderVariable: null,
      }),
    ]);
    for (const bad of [
      { hosts: ['*.a.test'] },
      { hosts: ['192.0.2.1'] },
      { header: 'Host' },
      { header: 'a b' },
      { value: 'x' },
      { value: '{}{}' },
      { value: '{}\r\nx: y' },
      { endpointVariable: undefined },
    ])
      expect(() => withUser({ credentials: [{ ...rule, ...bad } as never] })).toThrow(/credential "api"/);
  });
});

describe('what cannot be meant', () => {
  it.each<[string, Omit<PolicyDocument, 'nd7'>, RegExp]>([
    ['a bare path', { files: { read: { allow: ['src'] } } }, /Write \.\/src for the project/],
    ['a path that climbs', { files: { read: { allow: ['./../x'] } } }, /has "\.\."/],
    ['a wildcard in a path', { files: { read: { allow: ['./*.pem'] } } }, /Patterns go to "masks"/],
    ['an unknown variable', { files: { read: { allow: ['$HOME/x'] } } }, /Known names are \$TMP/],
    ['a name of Object.prototype', { files: { read: { allow: ['$constructor/x'] } } }, /Known names/],
    ['NUL in a path', { files: { read: { allow: ['/a\0b'] } } }, /NUL/],
    ['a pattern that ends in **', { masks: ['a/**'] }, /ends with \*\*/],
    ['** inside a name', { masks: ['a**b'] }, /\*\* where it cannot stand/],
    ['** in a protected name', { protect: { refuse: ['**/x'] } }, /Only masks take it/],
    ['a pattern that climbs', { masks: ['../x'] }, /"\.\." as a component/],
    ['an URL as a host', { network: { allow: ['https://a.test/'] } }, /A rule names a host, not a URL/],
    ['a profile nobody knows', { extends: ['defualt'] }, /no profile or pack is called "defualt"/],
    ['a range that ends before it begins', { network: { listen: ['9-8'] } }, /no range of ports/],
  ])('%s', (_what, document, message) => {
    expect(() => withUser(document)).toThrow(message);
  });

  it('a circle of policies', () => {
    const file = (name: string, ...others: string[]) =>
      [name, builtinPolicy(name, { nd7: 1, extends: others })] as const;
    const files = new Map([file('./a.jsonc', './b.jsonc'), file('./b.jsonc', './a.jsonc')]);
    expect(() => withUser({ extends: ['./a.jsonc'] }, { files })).toThrow(/extends/);
    const chain = new Map(Array.from({ length: 20 }, (_, i) => file(`./${i}.jsonc`, `./${i + 1}.jsonc`)));
    expect(() => withUser({ extends: ['./0.jsonc'] }, { files: chain })).toThrow(/extends/);
  });

  it('a file that somebody else than the person extends', () => {
    const project = { policy: builtinPolicy('project', { nd7: 1, extends: ['./x.jsonc'] }), trusted: true };
    expect(() => compile({ ...input, project })).toThrow(/Only your own policy may extend files/);
  });

  it.each([
    [{ project: '/' }],
    [{ home: 'relative' }],
    [{ nd7Home: HOME }],
    [{ nd7Home: PROJECT }],
    [{ project: `${HOME}/.nd7/x` }],
    [{ tmp: '/tmp/' }],
  ])('places %j', (places) => {
    expect(() => compile({ ...input, places: { ...input.places, ...places } })).toThrow(/folder/);
  });
});
