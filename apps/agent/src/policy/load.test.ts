import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accessAt, compile, decideHost, PolicyError } from '@nd7/policy';
import { CliError } from '../cli/io.js';
import { loadPolicies } from './load.js';
import { distrust, trust } from './trusted.js';

let root: string;
let nd7Home: string;
let project: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nd7-load-'));
  nd7Home = join(root, 'home', '.nd7');
  project = join(root, 'home', 'p');
  mkdirSync(nd7Home, { recursive: true, mode: 0o700 });
  mkdirSync(join(project, '.nd7'), { recursive: true });
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const load = (profile: string | null = null) =>
  loadPolicies({
    places: { home: join(root, 'home'), project, tmp: '/tmp', nd7Home, variables: {} },
    profile,
    packs: [],
    session: null,
  });
const write = (path: string, text: string): void => {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
};
const asked = { kind: 'name', host: 'a.test' } as const;

describe('the policies of a session', () => {
  it('are nd7’s default where nobody wrote any', () => {
    const { ruleset } = compile(load());
    expect(accessAt(ruleset, join(project, 'x')).write).toBe(true);
    expect(accessAt(ruleset, join(root, 'home', '.ssh')).read).toBe(false);
    expect(ruleset.layers.map(({ name }) => name)).toContain('default');
  });

  it('are the person’s own, with the files that it extends, and a profile by the name of its file', () => {
    write(join(nd7Home, 'policy.jsonc'), '{"nd7": 1, "extends": ["default", "./more/net.jsonc"], // mine\n}');
    write(
      join(nd7Home, 'more/net.jsonc'),
      '{"nd7": 1, "extends": ["./more/b.jsonc"], "network": {"allow": ["a.test"]}}',
    );
    write(join(nd7Home, 'more/b.jsonc'), '{"nd7": 1, "files": {"write": {"allow": ["~/b"]}}}');
    const { ruleset } = compile(load());
    expect(decideHost(ruleset.network, asked, 443).rule?.source).toMatchObject({
      file: join(nd7Home, 'more/net.jsonc'),
      line: 1,
    });
    expect(accessAt(ruleset, join(root, 'home/b')).write).toBe(true);
    write(join(nd7Home, 'profiles/quiet.jsonc'), '{"nd7": 1, "extends": ["offline"]}');
    expect(decideHost(compile(load('quiet')).ruleset.network, asked, 443).allow).toBe(false);
    expect(compile(load('quiet')).ruleset.layers.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['./profiles/quiet.jsonc', 'offline']),
    );
  });

  it('let a project narrow, and widen once its file’s hash is trusted, and no longer when the file has changed', () => {
    const file = join(project, '.nd7/policy.jsonc');
    write(file, '{"nd7": 1, "network": {"allow": ["a.test"]}, "files": {"write": {"deny": ["./vendor"]}}}');
    const reached = () => decideHost(compile(load()).ruleset.network, asked, 443).allow;
    const first = load();
    expect(first.project?.trusted).toBe(false);
    expect(reached()).toBe(false);
    expect(accessAt(compile(first).ruleset, join(project, 'vendor/x')).write).toBe(false);
    trust(nd7Home, { project, hash: first.project?.policy.hash ?? '' });
    expect(reached()).toBe(true);
    expect(accessAt(compile(load()).ruleset, join(project, 'vendor/x')).write).toBe(false);
    write(file, '{"nd7": 1, "network": {"allow": ["a.test", "b.test"]}}');
    expect(reached()).toBe(false);
    trust(nd7Home, { project, hash: load().project?.policy.hash ?? '' });
    expect(reached()).toBe(true);
    distrust(nd7Home, project);
    expect(reached()).toBe(false);
  });

  it('do not come through links, from above, or as something that is no file', () => {
    write(join(root, 'elsewhere.jsonc'), '{"nd7": 1}');
    symlinkSync(join(root, 'elsewhere.jsonc'), join(project, '.nd7/policy.jsonc'));
    expect(load).toThrow(/policy\.jsonc: the policy is a link/);
    rmSync(join(project, '.nd7/policy.jsonc'));
    mkdirSync(join(project, '.nd7/policy.jsonc'));
    expect(load).toThrow(/the policy is no file/);
    rmSync(join(project, '.nd7'), { recursive: true });
    write(join(project, 'elsewhere/policy.jsonc'), '{"nd7": 1}');
    symlinkSync('elsewhere', join(project, '.nd7'));
    expect(load).toThrow(/\.nd7: the folder of the policy is a link/);
    rmSync(join(project, '.nd7'));
    write(join(nd7Home, 'policy.jsonc'), '{"nd7": 1, "extends": ["./../x.jsonc"]}');
    expect(load).toThrow(PolicyError);
    write(join(nd7Home, 'policy.jsonc'), '{"nd7": 1, "extends": ["./missing.jsonc"]}');
    expect(() => compile(load())).toThrow(/policy\.jsonc:1: "\.\/missing\.jsonc" was not found/);
    expect(() => load('../x')).toThrow(/no name of a profile/);
    expect(() => compile({ ...load('missing'), user: null })).toThrow(/missing\.jsonc" was not found/);
  });

  it('are refused with the line that is wrong', () => {
    write(join(nd7Home, 'policy.jsonc'), '{\n  "nd7": 1,\n  "files": {"reed": {}}\n}');
    expect(load).toThrow(/policy\.jsonc:3: files: Unrecognized key: "reed"/);
    write(join(nd7Home, 'policy.jsonc'), '{"nd7": 1}');
    write(join(nd7Home, 'trusted-policies.json'), '{"trusted": [{"project": 1}]}');
    write(join(project, '.nd7/policy.jsonc'), '{"nd7": 1}');
    expect(load).toThrow(CliError);
  });
});
