// `nd7 learn` around real tools: the profile that it writes runs the same command without a refusal, and nothing that is held back is in it.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { readPolicy, type PolicyDocument } from '@nd7/policy';
import { ProfileFile } from './learn-file.js';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

let user: string;
let project: string;
beforeEach(() => {
  user = join(throwAway(), 'a user ünï');
  project = join(user, 'project');
  mkdirSync(join(user, '.ssh'), { recursive: true });
  mkdirSync(join(user, '.nd7'), { mode: 0o700 });
  mkdirSync(project);
  writeFileSync(join(user, '.ssh/id'), 'SECRET');
  writeFileSync(join(user, '.gitconfig'), '[user]\nname = a\nemail = a@example.com\n');
  // The temporary folder, in which this home lies, is writable: a real home is not.
  writeFileSync(join(user, '.nd7/policy.jsonc'), '{"nd7": 1, "files": {"write": {"deny": ["~"]}}}');
});
afterEach(removeThrowAways);

const environment = { PATH: process.env['PATH'] ?? '', TERM: 'xterm', LANG: 'C.UTF-8', HISTFILE: '/dev/null' };
function nd7(...args: string[]) {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
    cwd: project,
    encoding: 'utf8',
    env: { ...environment, HOME: user },
    input: '',
  });
  return { status, signal, stdout, stderr };
}
const profile = (name: string): PolicyDocument => {
  const file = join(user, `.nd7/profiles/${name}.jsonc`);
  return readPolicy(readFileSync(file, 'utf8'), file, name).document;
};
const script = (name: string, text: string): void => writeFileSync(join(project, name), text);

const TOOLS: [string, () => string[], Partial<PolicyDocument>][] = [
  [
    'git',
    () => {
      spawnSync('git', ['init', '-q', project]);
      script('t.sh', 'git add t.sh; git commit -qm "a commit" --allow-empty; git switch -qC b; git log -1 --format=%s');
      return ['sh', 't.sh'];
    },
    { extends: ['offline'] },
  ],
  [
    'make and a compiler',
    () => {
      script('hello.c', '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n');
      script('Makefile', 'all: hello\n\t@./hello\nhello: hello.c\n\t@cc -o $@ $<\nclean:\n\t@rm -f hello\n');
      return ['sh', '-c', 'make -s clean all'];
    },
    { files: { read: { deny: ['~', '/data', '/media', '/mnt', '/opt', '/srv', '/var'] }, exec: { deny: ['~'] } } },
  ],
  [
    'node, with modules of the home folder',
    () => {
      const modules = join(user, '.tool/node_modules/dep');
      mkdirSync(modules, { recursive: true });
      for (const name of ['a', 'b', 'c', 'd', 'e'])
        writeFileSync(join(modules, `${name}.js`), `exports.x = "${name}";`);
      script(
        't.js',
        `for (const n of 'abcde') process.stdout.write(require(process.env.HOME + '/.tool/node_modules/dep/' + n).x); console.log(new Set(require('fs').readdirSync('.')).has('t.js'))`,
      );
      return ['node', 't.js'];
    },
    {
      files: expect.objectContaining({
        read: expect.objectContaining({ allow: ['~/.tool/node_modules/dep'] }) as object,
        write: { deny: ['.'] },
      }) as object,
    },
  ],
  [
    'python',
    () => {
      mkdirSync(join(user, '.py'));
      writeFileSync(join(user, '.py/conf.json'), '{"a": 1}');
      script(
        't.py',
        'import json, os, ssl, tempfile\nprint(json.load(open(os.path.expanduser("~/.py/conf.json"))))\nwith tempfile.TemporaryFile() as f: f.write(b"x")\nopen("out", "w").write("x")',
      );
      return ['python3', 't.py'];
    },
    {
      files: expect.objectContaining({
        read: expect.objectContaining({ allow: ['~/.py/conf.json'] }) as object,
      }) as object,
    },
  ],
  [
    'npm ci from its cache',
    () => {
      const made = spawnSync(
        'sh',
        [
          '-c',
          `mkdir -p "$HOME/dep" && cd "$HOME/dep" && echo '{"name":"dep","version":"1.0.0","bin":{"dep":"dep.js"},"scripts":{"postinstall":"node dep.js > built"}}' > package.json &&
          printf '#!/usr/bin/env node\\nconsole.log("dep ran")\\n' > dep.js && npm pack --silent --pack-destination ../project &&
          cd ../project && echo '{"name":"p","version":"1.0.0","dependencies":{"dep":"file:dep-1.0.0.tgz"},"scripts":{"t":"dep"}}' > package.json && npm install --offline --ignore-scripts --no-audit --no-fund`,
        ],
        { cwd: user, env: { ...environment, HOME: user }, encoding: 'utf8' },
      );
      expect([made.status, made.stderr]).toEqual([0, '']);
      return [
        'sh',
        '-c',
        'npm ci --offline --no-audit --no-fund --silent && npm run --silent t && cat node_modules/dep/built',
      ];
    },
    { extends: ['offline', 'npm'] },
  ],
];

describe('nd7 learn', () => {
  it.each(TOOLS)('writes a profile by which %s does the same again, without a refusal', (_name, prepare, wanted) => {
    const command = prepare();
    const learnt = nd7('learn', '--write', 'it', '--', ...command);
    expect([learnt.status, learnt.stderr]).toEqual([0, expect.stringContaining('profiles/it.jsonc')]);
    expect(profile('it')).toMatchObject(wanted);
    const checked = nd7('policy', 'check', join(user, '.nd7/profiles/it.jsonc'));
    expect(checked).toMatchObject({ status: 0, stdout: 'good\n', stderr: '' });
    expect(nd7('run', '--profile', 'it', '--', ...command)).toEqual({ ...learnt, stderr: '' });
    // The same again: what is learned under the profile is the profile.
    const again = nd7('learn', '--profile', 'it', '--write', 'again', '--', ...command);
    expect(again.status).toBe(0);
    expect(profile('again')).toEqual(profile('it'));
    expect(statSync(join(user, '.nd7/profiles/it.jsonc')).mode & 0o777).toBe(0o600);
  });

  it('holds back what is risky, keeps it closed meanwhile, and takes it in when told to', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    const port = await new Promise<number>((done) =>
      server.once('listening', () => done((server.address() as { port: number }).port)),
    );
    script('.env', 'KEY=1');
    script(
      't.sh',
      `cat ~/.ssh/id .env; echo x > ~/.bashrc; mkdir .vscode; mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/y; python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}))' 2> /dev/null || echo closed; exit 3`,
    );
    try {
      const first = nd7('learn', '--json', '--write', 'x', '--', 'sh', 't.sh');
      expect([first.status, first.stdout]).toEqual([3, 'closed\n']);
      expect(existsSync(join(user, '.bashrc'))).toBe(false);
      const told = JSON.parse(first.stderr.slice(first.stderr.indexOf('{"profile"'))) as { held: { item: string }[] };
      const items = told.held.map(({ item }) => item);
      expect(items).toEqual([
        `loopback:${port}`,
        'read:./.env',
        'read:~/.ssh/id',
        'write:./.vscode',
        'write:~/.bashrc',
      ]);
      expect(told).toMatchObject({
        code: 3,
        complete: true,
        widened: ['~/.cache/tool'],
        profile: profile('x'),
        file: join(user, '.nd7/profiles/x.jsonc'),
      });
      expect(JSON.stringify(profile('x'))).not.toMatch(/ssh|env"|bashrc|vscode|loopback/);
      const include = ['read:~/.ssh/id', 'read:./.env'].flatMap((item) => ['--include', item]);
      const second = nd7('learn', ...include, '--write', 'y', '--profile', 'x', '--', 'sh', 't.sh');
      expect(second.stdout).toBe('SECRETKEY=1closed\n');
      expect(second.stderr).not.toMatch(/held back: read|refused this time/);
      expect(nd7('run', '--profile', 'y', '--', 'sh', 't.sh').stdout).toBe('SECRETKEY=1closed\n');
    } finally {
      server.close();
    }
  });

  it('writes to the file that was named, and not where what runs inside has led its name', () => {
    const settings = join(user, '.settings');
    mkdirSync(settings);
    writeFileSync(join(settings, 'rc'), 'mine');
    writeFileSync(join(project, 'p.jsonc'), '');
    script('link.sh', 'rm -f p.jsonc; ln -s ../.settings/rc p.jsonc; rm -rf out; ln -s ../.settings out');
    for (const args of [
      ['--force', '--write', './p.jsonc'],
      ['--write', './out/new.jsonc'],
    ]) {
      rmSync(join(project, 'out'), { force: true });
      expect(nd7('learn', ...args, '--', 'sh', 'link.sh')).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/what ran inside has moved .*\.jsonc/) as string,
      });
    }
    expect(readdirSync(settings)).toEqual(['rc']);
    expect(readFileSync(join(settings, 'rc'), 'utf8')).toBe('mine');
  });

  it('leaves no file where nothing was learned, and what was there as it was', () => {
    const file = join(project, 'q.jsonc');
    ProfileFile.open(file, false).abandon();
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, 'mine');
    ProfileFile.open(file, true).abandon();
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(() => ProfileFile.open(file, false)).toThrow(/EEXIST/);
    symlinkSync(file, join(project, 'link'));
    expect(() => ProfileFile.open(join(project, 'link'), true)).toThrow(/is a link/);
  });

  it('keeps what was learned until it was interrupted', async () => {
    const command = ['learn', '--write', 'cut', '--', 'sh', '-c', 'cat ~/.gitconfig; echo up; exec sleep 60'];
    const running = spawn(process.execPath, [BIN, ...command], { cwd: project, env: { ...environment, HOME: user } });
    let said = '';
    running.stdout.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      if (said.includes('up')) running.kill('SIGINT');
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
      running.once('close', (...end) => done(end)),
    );
    expect([code, signal]).toEqual([null, 'SIGINT']);
    expect(profile('cut').files?.read?.allow).toEqual(['~/.gitconfig']);
  });

  it('says what is wrong before anything runs', () => {
    const ran = (...args: string[]) => nd7('learn', ...args, '--', 'sh', '-c', 'echo ran');
    expect(ran('--include', 'x')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/"x" is no item[^]*read:/) as string,
    });
    expect(ran('--network', 'all')).toMatchObject({ status: 2, stdout: '' });
    writeFileSync(join(project, 'there'), 'mine');
    expect(ran('--write', './there')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('--force') as string,
    });
    expect(ran('--write', './there', '--force')).toMatchObject({ status: 0, stdout: 'ran\n' });
    const { document } = readPolicy(readFileSync(join(project, 'there'), 'utf8'), 'there', 'there');
    expect(document.extends).toEqual(['offline']);
    expect(ran('--network', 'profile')).toMatchObject({
      status: 0,
      stdout: 'ran\n',
      stderr: expect.stringContaining('"offline"') as string,
    });
  });
});
