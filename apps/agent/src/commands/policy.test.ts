import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { buildProgram } from '../cli/program.js';
import { CliError } from '../cli/io.js';
import { capturedIo, removeFolders, throwAwayFolder, type CapturedIo } from '../testing/cli.fixture.js';

let home: string;
let project: string;
let nd7Home: string;

beforeEach(() => {
  home = join(throwAwayFolder(), 'home');
  project = join(home, 'p');
  nd7Home = join(home, '.nd7');
  mkdirSync(join(project, '.nd7'), { recursive: true });
  mkdirSync(nd7Home, { mode: 0o700 });
  execFileSync('git', ['-C', project, 'init', '-q'], {
    env: { PATH: process.env['PATH'], HOME: home, GIT_CONFIG_NOSYSTEM: '1' },
  });
});
afterEach(removeFolders);

async function nd7(
  args: string[],
  { env, ...more }: { isJson?: boolean; env?: Record<string, string> } = {},
): Promise<CapturedIo> {
  const io = {
    ...capturedIo({ home: nd7Home, cwd: project, ...more }),
    env: { HOME: home, PATH: process.env['PATH'], GITHUB_TOKEN: 'x', ...env },
  };
  const program = await buildProgram(io);
  await program.parseAsync(['node', 'nd7', ...args]);
  return io;
}
const mine = (text: string): void => writeFileSync(join(nd7Home, 'policy.jsonc'), text);
const theirs = (text: string): void => writeFileSync(join(project, '.nd7/policy.jsonc'), text);

describe('nd7 why', () => {
  it('names the rule with its line, and the nearest way', async () => {
    mine('{\n  "nd7": 1,\n  "files": {"read": {"deny": [\n    "~/diary"\n  ]}}\n}');
    const { lines } = await nd7(['why', '~/diary/monday', '--read']);
    expect(lines).toEqual([
      `denied    ${home}/diary/monday is hidden`,
      `          rule  ${nd7Home}/policy.jsonc:4 (user), files.read.deny: ~/diary`,
      `          or    a person can allow it in their own policy: "${home}/diary/monday" in files.read.allow; in a session that lives: nd7 allow read ${home}/diary/monday`,
    ]);
  });

  it('answers for paths as they are here: through links, in git directories, tracked, sockets', async () => {
    mkdirSync(join(home, '.ssh'));
    symlinkSync(join(home, '.ssh'), join(project, 'keys'));
    expect((await nd7(['why', 'keys/id', '--read'])).lines.slice(0, 2)).toEqual([
      `that is ${home}/.ssh/id`,
      `denied    ${home}/.ssh/id is hidden`,
    ]);
    mkdirSync(join(home, 'dots/gh'), { recursive: true });
    mkdirSync(join(home, '.config'));
    symlinkSync(join(home, 'dots/gh'), join(home, '.config/gh'));
    expect((await nd7(['why', '~/.config/gh/hosts.yml', '--read'])).lines.slice(0, 2)).toEqual([
      `that is ${home}/dots/gh/hosts.yml`,
      `denied    ${home}/.config/gh/hosts.yml is hidden`,
    ]);
    mkdirSync(join(project, 'bare/objects'), { recursive: true });
    mkdirSync(join(project, 'bare/refs'));
    expect((await nd7(['why', './bare/hooks/x', '--write'])).lines[0]).toMatch(/^allowed/);
    writeFileSync(join(project, 'bare/HEAD'), '');
    expect((await nd7(['why', './bare/hooks/x', '--write'])).lines[0]).toMatch(
      /^denied .*git runs it at the next commit$/,
    );
    writeFileSync(join(project, '.env'), 'A=1\n');
    expect((await nd7(['why', '.env', '--read'])).lines[0]).toMatch(/^denied .*masked$/);
    execFileSync('git', ['-C', project, 'add', '-f', '.env']);
    expect((await nd7(['why', '.env', '--read'])).lines[0]).toMatch(/^allowed/);
    // A name in the index is not enough: the mask lets out what git holds anyway, and no other content.
    writeFileSync(join(project, '.env'), 'A=2\n');
    expect((await nd7(['why', '.env', '--read'])).lines[0]).toMatch(/^denied .*masked$/);
    const server = createServer();
    await new Promise<void>((done) => server.listen(join(project, 's'), done));
    expect((await nd7(['why', './s'])).lines[0]).toMatch(/may not be connected to/);
    await new Promise((done) => server.close(done));
  });

  it('answers for hosts, ports and variables', async () => {
    mine('{"nd7": 1, "network": {"listen": [3000]}}');
    const first = async (...args: string[]): Promise<string> => (await nd7(['why', ...args])).lines[0] ?? '';
    expect(await first('github.com')).toMatch(/^allowed .*github\.com:443/);
    expect(await first('example.com:8080')).toBe('denied    no rule allows example.com:8080');
    expect(await first('127.1')).toMatch(/no host and port \(odd-address\)/);
    expect(await first('api.anthropic.com')).toMatch(/^denied/);
    expect(await first('api.anthropic.com', '--for', '/usr/bin/claude')).toMatch(/^allowed/);
    expect(await first('3000', '--listen')).toMatch(/^allowed/);
    expect(await first('3001', '--listen')).toMatch(/^denied/);
    expect(await first('$GITHUB_TOKEN')).toBe('denied    GITHUB_TOKEN is held back');
    await expect(nd7(['why', 'x', '--loopback'])).rejects.toThrow('"x" is no port');
    const { values } = await nd7(['why', '/etc/shadow', '--read'], { isJson: true });
    expect(values).toEqual([
      {
        what: '/etc/shadow',
        leads_to: null,
        answers: [
          {
            about: 'read',
            outcome: 'denied',
            by: 'file',
            reason: '/etc/shadow is hidden',
            rule: { policy: 'secrets', layer: 'profile', file: null, line: null, text: 'files.read.deny: /etc/shadow' },
            instead: [
              'a person can allow it in their own policy: "/etc/shadow" in files.read.allow; in a session that lives: nd7 allow read /etc/shadow',
            ],
          },
        ],
      },
    ]);
  });
});

describe('nd7 policy', () => {
  it('show and explain print everything, explain with the rule behind it', async () => {
    mine('{"nd7": 1,\n"network": {"allow": ["a.test"]}}');
    const shown = (await nd7(['policy', 'show'])).lines;
    const explained = (await nd7(['policy', 'explain'])).lines;
    expect(shown.some((line) => /^ {2}a\.test:443 +allowed, TLS for this name$/.test(line))).toBe(true);
    expect(shown.join('\n')).not.toContain('policy.jsonc:2');
    expect(explained.join('\n')).toContain(`${nd7Home}/policy.jsonc:2 (user), network.allow: a.test`);
    const [value] = (await nd7(['policy', 'show'], { isJson: true })).values;
    expect(value).toMatchObject({
      project,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/) as never,
      layers: expect.arrayContaining([expect.objectContaining({ layer: 'user' })]) as never,
    });
  });

  it('diff says what the policies here change, and which way', async () => {
    for (const env of [{}, { GOCACHE: join(home, 'moved') }])
      expect((await nd7(['policy', 'diff'], { env })).lines).toEqual(['nothing changes']);
    mine('{"nd7": 1, "files": {"exec": {"allow": ["~/out"]}, "read": {"deny": ["~/in"]}}}');
    const lines = (await nd7(['policy', 'diff'])).lines.filter((line) => /^[-+~] file/.test(line));
    // The home folder of this test lies in $TMP, where everything is written and nothing run.
    expect(lines).toEqual([`- file ${home}/in: rw- → ---`, `+ file ${home}/out: rw- → rwx`]);
    await expect(nd7(['policy', 'diff', '--from', 'x'])).rejects.toThrow('brings no profile "x"');
  });

  it('check says what is wrong, wide or in vain, of what holds here or of a file', async () => {
    expect((await nd7(['policy', 'check'])).lines).toEqual(['good']);
    theirs('{"nd7": 1, "network": {"allow": ["evil\\u001b[2J.test"]}}');
    await expect(nd7(['policy', 'check'])).rejects.toThrow(
      /^[^\u001b]*policy\.jsonc:1: "evil⟦ESC⟧\[2J\.test" is no host name/,
    );
    theirs('{"nd7": 1, "network": {"allow": ["evil.test"]}}');
    expect((await nd7(['policy', 'check'])).lines[0]).toMatch(/^asks: the project's policy is not trusted/);
    const file = join(home, 'x.jsonc');
    writeFileSync(file, '{"nd7": 1, "sockets": {"allow": ["docker"]}}');
    expect((await nd7(['policy', 'check', file])).lines[0] ?? '').toMatch(/^asks|^wide: docker: this is root/);
    writeFileSync(file, '{"nd7": 1, "sokets": {}}');
    await expect(nd7(['policy', 'check', file])).rejects.toThrow(/x\.jsonc:1: the policy: Unrecognized key: "sokets"/);
    await expect(nd7(['policy', 'check', join(home, 'none')])).rejects.toThrow(/cannot be read \(ENOENT\)/);
  });

  it('trust takes one version of the project’s policy, and only when somebody says so', async () => {
    await expect(nd7(['policy', 'trust', '--yes'])).rejects.toThrow(/has no policy/);
    theirs('{"nd7": 1, "network": {"allow": ["a.test"]}}');
    await expect(nd7(['policy', 'trust'])).rejects.toThrow(CliError);
    expect((await nd7(['why', 'a.test'])).lines[0]).toMatch(/^denied/);
    expect((await nd7(['policy', 'trust', '--yes'])).lines[0]).toMatch(/^trusted: /);
    expect((await nd7(['why', 'a.test'])).lines[0]).toMatch(/^allowed/);
    theirs('{"nd7": 1, "network": {"allow": ["a.test", "b.test"]}}');
    expect((await nd7(['why', 'a.test'])).lines[0]).toMatch(/^denied/);
    await nd7(['policy', 'trust', '--yes']);
    expect((await nd7(['policy', 'distrust'], { isJson: true })).values).toEqual([
      { project, hash: expect.any(String) as never, trusted: false },
    ]);
    expect((await nd7(['why', 'a.test'])).lines[0]).toMatch(/^denied/);
  });

  it('distrust takes trust back whatever lies there now', async () => {
    const good = '{"nd7": 1, "network": {"allow": ["a.test"]}}';
    theirs(good);
    await nd7(['policy', 'trust', '--yes']);
    theirs('{"nd7": 1,');
    const { values } = await nd7(['policy', 'distrust'], { isJson: true });
    expect(values).toEqual([{ project, hash: expect.stringMatching(/^[0-9a-f]{64}$/) as never, trusted: false }]);
    theirs(good);
    expect((await nd7(['why', 'a.test'])).lines[0]).toMatch(/^denied/);
    expect((await nd7(['policy', 'distrust'], { isJson: true })).values).toEqual([
      { project, hash: null, trusted: false },
    ]);
  });
});
