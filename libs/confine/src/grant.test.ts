// What a living session is given from outside, and what is taken from it again, in the real boundary.
import { chmodSync, chownSync, existsSync, lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { constants } from 'node:os';
import { Living } from './living.fixture.js';
import { buildLaunchers, Machine, USERS } from './session.fixture.js';

const { ENOENT, ELOOP, EPERM, EISDIR, EEXIST, ENOTSOCK, EINVAL } = constants.errno;

beforeAll(buildLaunchers, 120_000);

describe.each(USERS)('a living session of %s', (_who, user) => {
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
    machine.file('hidden/file', 'hidden\n');
    machine.file('hidden/deep/er/file', 'deep\n');
    machine.file('hidden/.env', 'SECRET\n');
    machine.file('alone', 'alone\n');
    machine.file('seen/file', 'seen\n');
    machine.file('project/.env', 'SECRET\n');
    machine.file('project/.vscode/tasks.json', '{}\n');
    machine.hide('hidden');
    machine.hide('alone');
    machine.protect('.vscode');
    machine.protect('.envrc');
    machine.protect('hooks', { at: 'git-dir' });
    machine.mask('**/.env*', { under: [machine.project, machine.home], exceptTracked: false });
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
    ).toMatch(/^([^\n]*(denied|Read-only|busy)[^\n]*\n){7,}deep$/i);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(['alone\n', 'deep\n', 'SECRET\n']);
    await living.say(`exec 7< ${home}/alone`);
    expect(await Promise.all([1, 2, 3].map((id) => living.narrow(id)))).toEqual([0, 0, 0]);
    expect((await living.say(look)).match(/denied|No such/g)?.length).toBe(3);
    expect(await living.say(`cat <&7; ls -A ${home}/hidden`)).toBe('alone');
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
          `cd ${hidden}; cat file deep/er/file later; cat .env; test -S deep/socket || echo no socket; echo x > new; cd`,
        ),
      ).toMatch(/^hidden\ndeep\nlate\ncat: .*denied\nno socket\n.*(Read-only|denied)/i);
      expect(await living.widen(2, 'read', join(hidden, '.env'))).toBe(0);
      expect(await living.widen(3, 'socket', join(hidden, 'deep/socket'))).toBe(0);
      expect(await living.say(`cat ${hidden}/.env; test -S ${hidden}/deep/socket && echo socket`)).toBe(
        'SECRET\nsocket',
      );
      expect(await living.narrow(1)).toBe(0);
      expect(
        await living.say(`cat ${hidden}/.env; test -S ${hidden}/deep/socket && echo socket; cat ${hidden}/file`),
      ).toMatch(/^SECRET\nsocket\n.*No such/);
      expect([await living.narrow(2), await living.narrow(3)]).toEqual([0, 0]);
      expect(await living.say(`ls -A ${hidden}`)).toBe('');
    } finally {
      server.close();
    }
  });

  it('writes what was granted, and says so', async () => {
    living = await Living.of(machine);
    const { home, project } = machine;
    const seen = join(home, 'seen');
    expect(await living.say(`echo x > ${seen}/file; mkdir ${seen}/d`)).toMatch(/Read-only.*\n.*Read-only/);
    expect(await living.widen(1, 'write', seen, true)).toBe(0);
    expect(
      await living.say(
        `cd ${seen}; echo x > file; echo y >> file; mkdir -p d/e; echo a > d/a; mv d/a d/b; mv d e; ln -s file link; echo z > link2; rm link2; ln file hard; python3 -c "import os; os.truncate('hard', 0)"; echo t > ${project}/temp; mv ${project}/temp moved; mkdir gone; rmdir gone; : > made.tmp.1; mv made.tmp.1 made; cd`,
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

  it('refuses what is not there, links, sockets as files, and nd7’s own', async () => {
    living = await Living.of(machine);
    const { home } = machine;
    symlinkSync(join(home, 'hidden'), join(home, 'link'));
    expect(await living.widen(1, 'read', join(home, 'nothing'))).toBe(ENOENT);
    expect(await living.widen(1, 'read', join(home, 'link'))).toBe(ELOOP);
    expect(await living.widen(1, 'read', join(home, 'link/file'))).toBe(ELOOP);
    expect(await living.widen(1, 'socket', join(home, 'alone'))).toBe(ENOTSOCK);
    expect(await living.widen(1, 'write', join(home, 'hidden/new'))).toBe(ENOENT);
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
