// `nd7 run` on macOS, attacked from inside by the real Seatbelt. Nobody has run this suite yet: it is skipped by name elsewhere.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';

const BIN = join(import.meta.dirname, '../../apps/agent/bin/nd7.js');
const WITHOUT = ['files.leaves', 'terminal.input'].flatMap((name) => ['--without', name]);

(process.platform === 'darwin' ? describe : describe.skip)('a session by Seatbelt [macOS]', () => {
  let home: string;
  let project: string;
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(homedir(), '.nd7-test-')));
    project = join(home, 'project');
    for (const folder of ['project/.git/hooks', 'project/sub', '.ssh', '.nd7'])
      mkdirSync(join(home, folder), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, '.ssh/id'), 'SECRET');
    writeFileSync(join(project, '.env'), 'SECRET');
    writeFileSync(join(home, 'note'), 'NOTE');
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));
  const run = (script: string) =>
    spawnSync(process.execPath, [BIN, 'run', ...WITHOUT, '--json', '--', 'sh', '-c', script], {
      cwd: project,
      encoding: 'utf8',
      env: { PATH: '/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin', HOME: home },
    });

  it('shows what is shown and hides what is hidden', () => {
    const { stdout, status } = run(
      'cat ~/note ~/.ssh/id .env ~/.nd7/* /private/var/db/sudo 2>/dev/null; ln ~/.ssh/id x; cat x; ln -s ~/.ssh/id y; cat y; echo end',
    );
    expect([stdout, status]).toEqual(['NOTEend\n', 0]);
  });

  it('writes the project and its temporary folder, and nothing else', () => {
    const { stdout } = run(`echo x > made && echo x > "$TMPDIR/made" && echo fine
      for f in ~/out ~/.zshrc /tmp/nd7-out /private/tmp/nd7-out /usr/local/nd7-out; do echo x > $f && echo "WROTE $f"; done; chmod 777 ~/note && echo MODE; xattr -w a b ~/note && echo XATTR; rm ~/note && echo REMOVED`);
    expect(stdout).toBe('fine\n');
    expect(existsSync(join(project, 'made'))).toBe(true);
  });

  it('makes no protected name, in any spelling and by any way', () => {
    const { stdout } = run(`
      for f in .claude/x .CLAUDE/x .vscode/tasks.json .VSCode/x .envrc .Envrc .git/hooks/pre-commit .GIT/HOOKS/x sub/.mcp.json .github/hooks/x; do mkdir -p "$(dirname "$f")"; echo x > "$f" && echo "MADE $f"; done
      mkdir d && echo x > d/tasks.json && mv d .vscode && echo MOVED; echo x > e; mv e .envrc && echo MOVED; ln e .envrc && echo LINKED; ln -s sub .claude && echo LINKED; mv .git moved && echo MOVED; echo end`);
    expect(stdout).toBe('end\n');
    for (const name of ['.claude', '.vscode', '.envrc', 'sub/.mcp.json'])
      expect(existsSync(join(project, name))).toBe(false);
  });

  it('reaches the proxy and nothing else', async () => {
    const server = createServer((socket) => socket.end('SERVICE')).listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    const { port } = server.address() as AddressInfo;
    try {
      const { stdout } =
        run(`nc -w 2 127.0.0.1 ${port}; nc -w 2 -u 127.0.0.1 ${port} < /dev/null && echo UDP; curl -s -m 5 --noproxy '*' https://example.com && echo DIRECT; dscacheutil -q host -a name example.com
        curl -s -o /dev/null -w '%{http_code}' -m 5 http://example.com/; echo; echo end`);
      expect(stdout).toBe('403\nend\n');
    } finally {
      server.close();
    }
  });

  it('signals, traces and asks nobody outside, and is not left by programs of the system', () => {
    const { stdout } = run(
      `kill -0 ${process.pid} && echo SIGNAL; open -a Calculator && echo OPENED; osascript -e 'tell application "Finder" to activate' && echo SCRIPT; launchctl submit -l nd7 -- /usr/bin/true && echo JOB; sandbox-exec -p '(version 1)(allow default)' cat ~/.ssh/id; echo end`,
    );
    expect(stdout).toBe('end\n');
  });

  it('proves at the start that it holds, and gives the program its exit code', () => {
    const { stderr, status } = run('exit 7');
    expect(status).toBe(7);
    const { tier, properties } = JSON.parse(stderr.trim().split('\n')[0] ?? '') as {
      tier: string;
      properties: { property: string; proofs: { verdict: string }[] }[];
    };
    expect(tier).toBe('seatbelt');
    for (const name of ['files.read', 'files.write', 'network.proxy', 'processes.signal'])
      expect([
        name,
        properties.find(({ property }) => property === name)?.proofs.map(({ verdict }) => verdict),
      ]).toEqual([name, ['held']]);
  });

  it('works: git, node, and what they start', () => {
    const { stdout, stderr } = run(
      'git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one 2>&1 | head -3; node -e "console.log(require(\'os\').tmpdir() === process.env.TMPDIR)"; (echo a; echo b) | sort -r',
    );
    expect([stdout.split('\n').slice(-4), stderr]).toEqual([
      ['true', 'b', 'a', ''],
      expect.stringContaining('seatbelt'),
    ]);
    expect(readFileSync(join(home, 'note'), 'utf8')).toBe('NOTE');
  });
});
