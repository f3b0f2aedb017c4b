// What a living session is given from outside, and what is taken from it again, in the real boundary.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { constants } from 'node:os';
import { furnish, Living, untilAsync } from './living.fixture.js';
import { buildLaunchers, Machine, USERS } from './session.fixture.js';

const { ENAMETOOLONG, ENOENT, ENOSPC, ELOOP, EPERM, EISDIR, EEXIST, ENOTSOCK, EINVAL, EOPNOTSUPP } = constants.errno;

beforeAll(buildLaunchers, 120_000);

/** Without mounts what is read is asked about: in strict sessions everything is. */
const WHERE = USERS.flatMap(([who, user]) => (['T1', 'T2'] as const).map((tier) => ({ who, user, tier })));

describe.each(WHERE)('a living session of $who in tier $tier', ({ user, tier }) => {
  const itInT1 = tier === 'T1' ? it : it.skip;
  let machine: Machine;
  let living: Living;
  /** A file below the home that is made after the start. */
  const late = (name: string, content = 'late\n'): string => {
    const path = machine.file(name, content);
    for (let at = path; at !== machine.home; at = dirname(at))
      if (user !== undefined) chownSync(at, user.uid, user.gid);
    return path;
  };
  beforeEach(() => {
    machine = new Machine(user);
    machine.tier = tier;
    machine.patterns = tier === 'T1' ? 'names' : 'strict';
    furnish(machine);
  });
  afterEach(async () => {
    await living.end();
    machine.close();
  });

  it('reads what was covered, what lies below a cover, what was masked, until it is taken back', async () => {
    living = await Living.of(machine);
    const { home, project } = machine;
    const paths = [`${home}/alone`, `${home}/hidden/deep/er/file`, `${project}/.env`];
    const look = `cat ${paths.join(' ')}`;
    expect((await living.say(look)).match(/denied|No such/g)?.length).toBe(3);
    expect(await Promise.all(paths.map((path, i) => living.widen(i + 1, 'read', path)))).toEqual([0, 0, 0]);
    expect(await living.say(look)).toBe('alone\ndeep\nSECRET');
    expect(
      await living.say(
        `for f in ${paths.join(' ')}; do echo x >> $f; echo x > $f; rm -f $f; done; ls -A ${home}/hidden`,
      ),
    ).toMatch(tier === 'T1' ? /^([^\n]*(denied|Read-only|busy)[^\n]*\n){7,}deep$/i : /^([^\n]*denied\n){9}/);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(['alone\n', 'deep\n', 'SECRET\n']);
    await living.say(`exec 7< ${home}/alone`);
    expect(await Promise.all([1, 2, 3].map((id) => living.narrow(id)))).toEqual([0, 0, 0]);
    expect((await living.say(look)).match(/denied|No such/g)?.length).toBe(3);
    expect(await living.say(`cat <&7; cat ${home}/hidden/deep/er/file`)).toMatch(/^alone\n.*(denied|No such)/);
    expect(await living.narrow(1)).toBe(ENOENT);
  });

  it('lets a file be saved as programs do: written beside its name first, and renamed to it; no other name beside it is', async () => {
    living = await Living.of(machine);
    const path = join(machine.home, 'seen/file');
    const save = (draft: string): string => `echo ${draft} > ${path}${draft} && mv ${path}${draft} ${path}`;
    expect(await living.widen(1, 'write', path)).toBe(0);
    for (const draft of ['.tmp.42.0f3a', '.tmp.1-2']) {
      await living.say(save(draft));
      expect(readFileSync(path, 'utf8')).toBe(`${draft}\n`);
    }
    for (const draft of ['.tmp', '.tmp.', '.tmp.x', '.tmp.1/x', '.tmp.sh', 'tmp.1', `.tmp.${'1'.repeat(50)}`, '.bak'])
      expect([draft, await living.say(save(draft))]).toEqual([
        draft,
        expect.stringMatching(/Read-only|denied|No such|nonexistent/i),
      ]);
    await living.narrow(1);
    expect(await living.say(save('.tmp.42.0f3a'))).toMatch(/Read-only|denied/i);
    expect(readFileSync(path, 'utf8')).toBe('.tmp.1-2\n');
  });

  // From a working folder in it a program names by a short path what has none that any rule could read.
  it('reads no folder that reaches deeper than a path does: what is masked there could not be covered', async () => {
    living = await Living.of(machine);
    const hidden = join(machine.home, 'hidden');
    const descend = `cd ${hidden} && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir -p ${'d'.repeat(240)}; cd ${'d'.repeat(240)}; done`;
    const outside = (script: string): Buffer => execFileSync('/bin/sh', ['-c', script], { ...user, stdio: 'pipe' });
    outside(`${descend}; echo SECRET > .env`);
    try {
      expect(await living.widen(1, 'read', hidden, true)).toBe(tier === 'T1' ? ENAMETOOLONG : 0);
      expect(await living.say(`${descend} 2> /dev/null; cat .env; cd`)).not.toContain('SECRET');
      expect(await living.widen(2, 'read', join(hidden, 'deep'), true)).toBe(0);
    } finally {
      outside(`rm -rf ${hidden}/ddd*`);
    }
  });

  it('reads a folder with all below it, but not what is masked or a socket in it', async () => {
    living = await Living.of(machine);
    const hidden = join(machine.home, 'hidden');
    const server = await listen(join(hidden, 'deep/socket'));
    try {
      expect(await living.widen(1, 'read', hidden)).toBe(EISDIR);
      expect(await living.widen(1, 'read', hidden, true)).toBe(0);
      expect(await living.widen(1, 'read', hidden, true)).toBe(EEXIST);
      late('hidden/later');
      expect(
        await living.say(
          `cd ${hidden}; cat file deep/er/file later; cat .env; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' 2> /dev/null || echo no socket; echo x > new; cd`,
        ),
      ).toMatch(/^hidden\ndeep\nlate\ncat: .*denied\nno socket\n.*(Read-only|denied)/i);
      expect(await living.widen(2, 'read', join(hidden, '.env'))).toBe(0);
      expect(await living.widen(3, 'socket', join(hidden, 'deep/socket'))).toBe(0);
      expect(
        await living.say(
          `cat ${hidden}/.env; cd ${hidden}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' && echo socket; cd`,
        ),
      ).toBe('SECRET\nsocket');
      expect(await living.narrow(1)).toBe(0);
      expect(
        await living.say(
          `cat ${hidden}/.env; cd ${hidden}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' && echo socket; cd; cat ${hidden}/file`,
        ),
      ).toMatch(/^SECRET\nsocket\n.*(No such|denied)/);
      expect([await living.narrow(2), await living.narrow(3)]).toEqual([0, 0]);
      expect(await living.say(`cat ${hidden}/file ${hidden}/.env`)).toMatch(
        /^cat: .*(No such|denied).*\ncat: .*(No such|denied)/,
      );
    } finally {
      server.close();
    }
  });

  it('writes what was granted, and says so', async () => {
    living = await Living.of(machine);
    const { home, project } = machine;
    const seen = join(home, 'seen');
    expect(await living.say(`echo x > ${seen}/file; mkdir ${seen}/d`)).toMatch(
      /(Read-only|denied).*\n.*(Read-only|denied)/,
    );
    expect(await living.widen(1, 'write', seen, true)).toBe(0);
    expect(
      await living.say(
        `cd ${seen}; echo x > file; echo y >> file; mkdir -p d/e; echo a > d/a; mv d/a d/b; mv d e; ln -s file link; echo z > link2; rm link2; ln file hard; python3 -c "import os; os.truncate('hard', 0)"; echo t > ${project}/temp; mv ${project}/temp moved; mkdir gone; rmdir gone; true > made.tmp.1; mv made.tmp.1 made; cd`,
      ),
    ).toBe('');
    expect(await living.say(`ls -AR ${seen}`)).toBe(
      `${seen}:\ne\nfile\nhard\nlink\nmade\nmoved\n\n${seen}/e:\nb\ne\n\n${seen}/e/e:`,
    );
    const granted = machine.heard.filter(({ rule }) => rule?.kind === 'grant');
    expect(granted.every(({ rule, verdict }) => rule?.index === 1 && verdict === 'recorded')).toBe(true);
    expect(new Set(granted.map(({ call }) => call))).toEqual(
      new Set(['open', 'mkdir', 'rename', 'rename-away', 'symlink', 'link', 'truncate', 'unlink', 'rmdir']),
    );
    expect(await living.say(`readlink /proc/self/fd/9 9> ${seen}/file`)).toBe(`${seen}/file`);
    await living.say(`exec 7>> ${seen}/file`);
    expect(await living.narrow(1)).toBe(0);
    expect(
      await living.say(`echo x > ${seen}/file; rm ${seen}/made; mv ${seen}/moved ${project}; echo open >&7`),
    ).toMatch(/^(.*(denied|Read-only|not permitted|cannot).*\n?){3,}$/i);
    expect(readFileSync(join(seen, 'file'), 'utf8')).toBe('open\n');
  });

  it('writes one protected name and nothing beside it, whether it is there or not', async () => {
    living = await Living.of(machine);
    const { project } = machine;
    const settings = join(project, '.vscode/settings.json');
    expect(await living.widen(1, 'write', settings)).toBe(0);
    expect(await living.widen(2, 'write', join(project, '.envrc'))).toBe(0);
    expect(
      await living.say(
        `echo 1 > .vscode/settings.json; echo 2 > s.tmp; mv s.tmp .vscode/settings.json; echo 3 > .envrc; echo x > .vscode/tasks.json; echo x > .vscode/other; mkdir d; echo x > d/.envrc; ln -s s .vscode/settings.json; ln .vscode/settings.json alias; ln -sf d .envrc; ls -A .vscode; ls -A d`,
      ),
    ).toMatch(/\nsettings.json\ntasks.json$/);
    expect(readFileSync(settings, 'utf8')).toBe('2\n');
    expect(readFileSync(join(project, '.envrc'), 'utf8')).toBe('3\n');
    expect(lstatSync(join(project, '.envrc')).isFile()).toBe(true);
    expect([lstatSync(settings).nlink, existsSync(join(project, 'alias'))]).toEqual([1, false]);
    expect(readFileSync(join(project, '.vscode/tasks.json'), 'utf8')).toBe('{}\n');
    expect([await living.narrow(1), await living.narrow(2)]).toEqual([0, 0]);
    await living.say(`echo x > .vscode/settings.json; echo x > .envrc; rm .vscode/settings.json`);
    expect(readFileSync(settings, 'utf8')).toBe('2\n');
    expect(readFileSync(join(project, '.envrc'), 'utf8')).toBe('3\n');
  });

  it('shows a file that the host puts in the place of a granted one, and masks it again afterwards', async () => {
    living = await Living.of(machine);
    const { home, project } = machine;
    const paths = [join(home, 'alone'), join(project, '.env'), join(home, 'hidden/deep/er/file')];
    expect(await Promise.all(paths.map((path, i) => living.widen(i + 1, 'read', path)))).toEqual([0, 0, 0]);
    paths.forEach((path) => renameSync(late(`other-${basename(path)}`, `new ${basename(path)}\n`), path));
    await untilAsync(async () => (await living.say(`cat ${paths.join(' ')}`)) === 'new alone\nnew .env\nnew file');
    rmSync(paths[0] as string);
    await untilAsync(async () => (await living.say(`cat ${paths[0]}`)).includes('cat:'));
    late('alone', 'once more\n');
    await untilAsync(async () => (await living.say(`cat ${paths[0]}`)) === 'once more');
    for (const id of [1, 2, 3]) expect(await living.narrow(id)).toBe(0);
    expect((await living.say(`cat ${paths.slice(1).join(' ')}`)).match(/denied|No such/g)?.length).toBe(2);
  });

  it('keeps every grant in force while others come and go above, below and beside it', async () => {
    living = await Living.of(machine);
    const hidden = join(machine.home, 'hidden');
    const file = join(hidden, 'deep/er/file');
    const reads = async (): Promise<string> => living.say(`cat ${file}`);
    // Above one that was there before, and the other way round; the same twice; what needs no mount.
    expect([await living.widen(1, 'read', file), await living.widen(2, 'read', hidden, true)]).toEqual([0, 0]);
    expect(await reads()).toBe('deep');
    expect(await living.narrow(1)).toBe(0);
    expect(await reads()).toBe('deep');
    expect([await living.widen(3, 'read', join(hidden, 'deep'), true), await living.widen(4, 'read', file)]).toEqual([
      0, 0,
    ]);
    expect(await living.narrow(2)).toBe(0);
    expect(await reads()).toBe('deep');
    expect(await living.narrow(3)).toBe(0);
    expect(await reads()).toBe('deep');
    expect([await living.widen(5, 'read', file), await living.narrow(4)]).toEqual([0, 0]);
    expect(await reads()).toBe('deep');
    expect([
      await living.widen(6, 'read', machine.project, true),
      await living.widen(7, 'read', join(machine.project, '.env')),
    ]).toEqual([0, 0]);
    expect([await living.narrow(6), await living.say('cat .env; echo x > new && cat new')]).toEqual([0, 'SECRET\nx']);
    expect([await living.narrow(5), await living.narrow(7)]).toEqual([0, 0]);
    expect((await living.say(`cat ${file} .env`)).match(/denied|No such/g)?.length).toBe(2);
    const mounts = `ls -A ${hidden}; grep -c " ${machine.home}/hidden" /proc/self/mountinfo`;
    if (tier === 'T1') expect(await living.say(mounts)).toBe('1');
  });

  it('takes 64 grants, no more, and keeps no mount and no descriptor of them', async () => {
    const all = Array.from({ length: 65 }, (_, i) => machine.file(`hidden/many/f${i}`, `${i}\n`));
    living = await Living.of(machine);
    const mounts = (): Promise<string> => living.say('cat /proc/self/mountinfo | wc -l');
    const before = await mounts();
    // What it makes once, with the first of them; nobody but root looks into it.
    const launcher = String(living.session.process.pid);
    const supervisor = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8').split(' ')[0] as string;
    const links = (): string[] =>
      process.geteuid?.() === 0
        ? readdirSync(`/proc/${supervisor}/fd`).map((fd) => readlinkSync(`/proc/${supervisor}/fd/${fd}`))
        : [];
    // Whose umask is known is held by a pidfd.
    const held = (): string[] =>
      links()
        .filter((target) => !target.includes('pidfd'))
        .sort();
    expect([await living.widen(99, 'read', all[0] as string), await living.narrow(99)]).toEqual([0, 0]);
    const descriptors = held();
    expect(await Promise.all(all.map((path, i) => living.widen(i + 1, i % 2 === 0 ? 'read' : 'write', path)))).toEqual([
      ...Array<number>(64).fill(0),
      ENOSPC,
    ]);
    expect(
      await living.say(`cat ${all.slice(0, 64).join(' ')} | wc -l; echo x > ${all[1]}; echo x > ${all[0]}`),
    ).toMatch(/^64\n.*f0/);
    expect(await Promise.all(all.slice(0, 64).map((_, i) => living.narrow(i + 1)))).toEqual(Array<number>(64).fill(0));
    expect(await mounts()).toBe(before);
    expect(held()).toEqual(descriptors);
    expect(readFileSync(all[1] as string, 'utf8')).toBe('x\n');
  });

  itInT1('makes a place in the session’s own temporary folder, and takes it away', async () => {
    living = await Living.of(machine);
    const outside = mkdtempSync('/var/tmp/nd7-grant-');
    try {
      chmodSync(outside, 0o755);
      writeFileSync(join(outside, 'file'), 'outside\n', { mode: 0o644 });
      expect(await living.say(`ls -A /var/tmp; mkdir ${outside}; echo own > ${outside}/own`)).toBe('');
      expect(await living.widen(1, 'read', join(outside, 'file'))).toBe(0);
      expect(await living.say(`cat ${outside}/*; rm -rf ${outside}`)).toMatch(
        /^outside\nown\n.*(busy|Read-only|denied)/,
      );
      expect(await living.narrow(1)).toBe(0);
      expect(await living.say(`ls -A ${outside}; rm -rf ${outside}; ln -s ${machine.home}/hidden ${outside}`)).toBe('');
      expect(await living.widen(2, 'read', join(outside, 'file'))).toBe(ELOOP);
      expect(await living.say(`rm ${outside}; ls -A /var/tmp`)).toBe('');
      expect(await living.widen(3, 'read', outside, true)).toBe(0);
      expect(await living.say(`cat ${outside}/file`)).toBe('outside');
      expect([await living.narrow(3), await living.say('ls -A /var/tmp')]).toEqual([0, '']);
      expect(readdirSync(outside)).toEqual(['file']);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('changes modes and times of what was granted, and of nothing else', async () => {
    living = await Living.of(machine);
    const { home } = machine;
    expect(await living.widen(1, 'write', join(home, 'seen'), true)).toBe(0);
    expect(
      await living.say(
        `cd ${home}/seen; mkdir d; chmod 700 file d; touch -d @86400 file; chmod 600 ../link-out ../plain; touch -d @86400 ../plain; cd`,
      ),
    ).toMatch(/Read-only|not permitted/);
    expect([
      lstatSync(join(home, 'seen/file')).mode & 0o777,
      lstatSync(join(home, 'seen/file')).mtimeMs,
      lstatSync(join(home, 'seen/d')).mode & 0o777,
    ]).toEqual([0o700, 86_400_000, 0o700]);
    expect(lstatSync(join(home, 'plain')).mtimeMs).not.toBe(86_400_000);
    expect(await living.narrow(1)).toBe(0);
    expect(await living.say(`chmod 644 ${home}/seen/file`)).toMatch(/Read-only|not permitted/);
  });

  it('gives nothing beside a grant to write: no second name, no way back, no other file by a link', async () => {
    machine.file('seen/secret', 'hidden\n');
    machine.hide('seen/secret');
    living = await Living.of(machine);
    const { home, project } = machine;
    const seen = join(home, 'seen');
    const before = machine.tree().filter((line) => !line.includes(`${seen}/`) && !line.includes(`${project}/`));
    expect(await living.widen(1, 'write', seen, true)).toBe(0);
    const said = await living.say(`
      cd ${seen}; ln -s ${home}/plain out; echo x > out; ln -s ../plain up; echo x >> up; true > ../plain; echo x > ../new; mkdir ../d; mv ../plain p; mv file ../f; rm ../plain; ln ../plain hard; ln file ${project}/hard
      ln ${project}/own hard; echo x > ${project}/own; ln ${project}/own ${project}/own2; mv ${project}/own2 moved && echo MOVED; mkdir -p ${project}/t/u; mv ${project}/t t && ls t; ln -s ${home} h; echo x > h/plain; rm h/plain; chmod 600 out; touch -d @1 up
      mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'; echo x > .env; echo x > .envrc; mkdir -p r/.git/hooks; echo x > r/.git/hooks/pre-commit; mkdir r/objects r/refs; echo ref > r/HEAD; mkdir r/hooks; echo x > secret; echo x >> secret; mv ${project}/own secret; cat <> secret; ln secret s2; rm secret; chmod 644 secret; cat secret; ls -A; cd; exec 8< ${seen}`);
    expect(said).toContain('MOVED');
    expect(said).not.toContain('hidden');
    expect(readFileSync(join(seen, 'secret'), 'utf8')).toBe('hidden\n');
    expect(machine.tree().filter((line) => !line.includes(`${seen}/`) && !line.includes(`${project}/`))).toEqual(
      before,
    );
    for (const name of ['hard', 'pipe', 'socket', '.env', '.envrc', 'r/.git/hooks', 'r/hooks'])
      expect([name, existsSync(join(seen, name))]).toEqual([name, false]);
    expect(existsSync(join(project, 'hard'))).toBe(false);
    expect(lstatSync(join(seen, 'file')).nlink).toBe(1);
    expect(await living.narrow(1)).toBe(0);
    await living.say(
      `cd /proc/self/fd/8 && { echo x > file; echo x > new; mkdir new; rm file; mv file f; chmod 600 file; ln file l; python3 -c 'import os; os.open(".", os.O_TMPFILE | os.O_RDWR)'; cd; }`,
    );
    expect([
      readFileSync(join(seen, 'file'), 'utf8'),
      existsSync(join(seen, 'new')),
      existsSync(join(seen, 'l')),
    ]).toEqual(['seen\n', false, false]);
  });

  it('lets nobody have what a name led to before or after it was granted', async () => {
    living = await Living.of(machine);
    const { home, project } = machine;
    // The session makes the granted name this and that all the time.
    await living.say(
      `mkdir a b; echo own > a/x; ln -s ${home}/hidden/deep/er/file b/x; (while :; do mv -T a c; mv -T b a; mv -T c b; done) 2> /dev/null & echo $! > pid`,
    );
    for (let i = 1; i <= 60; i++) {
      const error = await living.widen(i, i % 2 === 0 ? 'read' : 'write', join(project, 'a/x'));
      // It was there outside, and a moment later not in the session's view: then no place is made for it.
      expect([0, ELOOP, ENOENT, EOPNOTSUPP]).toContain(error);
      if (error === 0) expect(await living.narrow(i)).toBe(0);
    }
    expect(
      await living.say('kill $(cat pid); cat a/x b/x; echo changed > a/x; echo changed > b/x; true'),
    ).not.toContain('deep');
    expect(readFileSync(join(home, 'hidden/deep/er/file'), 'utf8')).toBe('deep\n');
  });

  it('is widened and narrowed while many calls run, and each of them is done or refused', async () => {
    living = await Living.of(machine);
    const seen = join(machine.home, 'seen');
    await living.say(
      `for n in 1 2 3 4; do (i=0; while [ ! -e stop ]; do i=$((i+1)); mkdir ${seen}/$n && echo $i > ${seen}/$n/f && mv ${seen}/$n/f ${seen}/$n/g && rm ${seen}/$n/g && rmdir ${seen}/$n; echo x > own$n; mv own$n own$n.2; done) > log$n 2>&1 & done`,
    );
    for (let i = 1; i <= 40; i++) {
      expect(await living.widen(i, 'write', seen, true)).toBe(0);
      expect(await living.widen(100 + i, 'read', join(machine.home, 'hidden'), true)).toBe(0);
      expect([await living.narrow(i), await living.narrow(100 + i)]).toEqual([0, 0]);
    }
    const left = readdirSync(seen, { recursive: true }).sort();
    await living.say('sleep 0.2');
    expect(readdirSync(seen, { recursive: true }).sort()).toEqual(left);
    expect(
      await living.say(
        'touch stop; wait; cat log* | grep -vE "Read-only|denied|No such|exists|cannot create" | head -3',
      ),
    ).toBe('');
    expect(machine.heard.some(({ rule }) => rule?.kind === 'grant')).toBe(true);
  });

  it('gives nothing any more when it has ended, however that was', async () => {
    living = await Living.of(machine);
    const path = join(machine.home, 'alone');
    expect(await living.widen(1, 'read', path)).toBe(0);
    const before = readFileSync('/proc/self/mountinfo', 'utf8');
    const launcher = String(living.session.process.pid);
    const supervisor = Number(readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8').split(' ')[0]);
    process.kill(supervisor, 'SIGKILL');
    expect(await living.session.ended).toMatchObject({ code: 125 });
    await expect(living.session.widen({ id: 2, what: 'read', path, below: false })).rejects.toThrow('has ended');
    await expect(living.session.narrow(1)).rejects.toThrow('has ended');
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before);
    expect(readFileSync(path, 'utf8')).toBe('alone\n');
  });

  it('connects to a socket while it is granted, and writes in a folder that was hidden', async () => {
    living = await Living.of(machine);
    const hidden = join(machine.home, 'hidden');
    const path = join(hidden, 'socket');
    const server = await listen(path);
    server.on('connection', (socket) => socket.end('answer'));
    const dial = `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("${path}"); print(s.recv(9).decode())'`;
    try {
      expect(await living.say(dial)).toMatch(/FileNotFound|PermissionError/);
      expect(await living.widen(1, 'socket', path)).toBe(0);
      expect(await living.say(dial)).toBe('answer');
      expect(await living.widen(2, 'write', hidden, true)).toBe(0);
      expect(
        await living.say(
          `mkdir ${hidden}/d && echo x > ${hidden}/d/f && mv ${hidden}/d/f ${hidden}/new && cat ${hidden}/new; ${dial}; echo x > ${hidden}/.env; rm ${hidden}/.env`,
        ),
      ).toMatch(/^x\nanswer\n.*denied.*\n.*(denied|Read-only)/i);
      expect(readFileSync(join(hidden, '.env'), 'utf8')).toBe('SECRET\n');
      expect([await living.narrow(1), await living.narrow(2)]).toEqual([0, 0]);
      expect(await living.say(`${dial}; ls -A ${hidden}; echo x > ${hidden}/new`)).toMatch(
        /(FileNotFound|PermissionError)[^]*\n.*(denied|Read-only|nonexistent)/,
      );
      expect(readFileSync(join(hidden, 'new'), 'utf8')).toBe('x\n');
    } finally {
      server.close();
    }
  });

  it('writes a mediated file freely only where the grant names it', async () => {
    execFileSync('git', ['init', '-q', machine.project]);
    machine.protect('config', { at: 'git-dir', treatment: 'mediate', mediator: 'git-config' });
    living = await Living.of(machine);
    const config = join(machine.project, '.git/config');
    expect(await living.widen(1, 'write', join(machine.project, '.git'), true)).toBe(0);
    expect(
      await living.say(
        'git config alias.x y; echo x >> .git/config; echo x > .git/hooks/pre-commit; echo ok > .git/description',
      ),
    ).toMatch(/could not[^]*denied/);
    expect(await living.widen(2, 'write', config)).toBe(0);
    expect(await living.say('git config alias.x y; echo "# z" >> .git/config')).toBe('');
    expect(readFileSync(config, 'utf8')).toMatch(/x = y\n# z\n$/);
    expect([await living.narrow(1), await living.narrow(2)]).toEqual([0, 0]);
    expect(await living.say('git config alias.z y')).toContain('could not');
    expect(existsSync(join(machine.project, '.git/hooks/pre-commit'))).toBe(false);
  });

  it('makes no link and no folder of one path, and no second name from one grant to another', async () => {
    machine.file('other/file', 'other\n');
    living = await Living.of(machine);
    const { home } = machine;
    expect(await living.widen(1, 'write', join(home, 'new'))).toBe(0);
    expect(await living.widen(2, 'write', join(home, 'seen'), true)).toBe(0);
    expect(await living.widen(3, 'write', join(home, 'other'), true)).toBe(0);
    expect(
      (
        await living.say(
          `ln -s ${home}/hidden ${home}/new; mkdir ${home}/new; mkdir ${home}/new.tmp.1; ln -s x ${home}/new.tmp.2; ln ${home}/seen/file ${home}/other/alias`,
        )
      ).split('\n'),
    ).toHaveLength(5);
    expect(
      await living.say(
        `ln ${home}/seen/file ${home}/seen/two; mv ${home}/seen/two ${home}/other/two; mv ${home}/other/file ${home}/seen/moved; echo x > ${home}/new; cat ${home}/new`,
      ),
    ).toBe('x');
    expect([
      lstatSync(join(home, 'other/two')).nlink,
      existsSync(join(home, 'other/alias')),
      existsSync(join(home, 'seen/moved')),
    ]).toEqual([1, false, true]);
  });

  it('refuses what is not there, links, sockets as files, and nd7’s own', async () => {
    living = await Living.of(machine);
    const { home } = machine;
    symlinkSync(join(home, 'hidden'), join(home, 'link'));
    expect(await living.widen(1, 'read', join(home, 'nothing'))).toBe(ENOENT);
    expect(await living.widen(1, 'read', join(home, 'link'))).toBe(ELOOP);
    expect(await living.widen(1, 'read', join(home, 'link/file'))).toBe(ELOOP);
    expect(await living.widen(1, 'socket', join(home, 'alone'))).toBe(ENOTSOCK);
    // Without a view a name in a hidden folder is one like others.
    expect(await living.widen(99, 'write', join(home, 'hidden/new'))).toBe(tier === 'T1' ? ENOENT : 0);
    for (const path of [join(home, '.nd7'), join(home, '.nd7/key'), home, '/proc/1/mem', '/dev/mem', '/sys'])
      expect(await living.widen(1, 'write', path, true)).toBe(EPERM);
    const server = await listen(join(home, 'seen/socket'));
    expect(await living.widen(1, 'read', join(home, 'seen/socket'))).toBe(EINVAL);
    server.close();
    expect(await living.say('echo on')).toBe('on');
  });
});

function listen(path: string): Promise<Server> {
  const server = createServer();
  return new Promise((done) => server.listen(path, () => (chmodSync(path, 0o777), done(server))));
}
