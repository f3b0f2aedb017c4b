// What is granted to be written in a living session, in the real boundary.
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeLiving, Living } from './living.fixture.js';

describeLiving((rig) => {
  it('lets a file be saved as programs do: written beside its name first, and renamed to it; no other name beside it is', async () => {
    rig.living = await Living.of(rig.machine);
    const path = join(rig.machine.home, 'seen/file');
    const save = (draft: string): string => `echo ${draft} > ${path}${draft} && mv ${path}${draft} ${path}`;
    expect(await rig.living.widen(1, 'write', path)).toBe(0);
    for (const draft of ['.tmp.42.0f3a', '.tmp.1-2']) {
      await rig.living.say(save(draft));
      expect(readFileSync(path, 'utf8')).toBe(`${draft}\n`);
    }
    for (const draft of ['.tmp', '.tmp.', '.tmp.x', '.tmp.1/x', '.tmp.sh', 'tmp.1', `.tmp.${'1'.repeat(50)}`, '.bak'])
      expect([draft, await rig.living.say(save(draft))]).toEqual([
        draft,
        expect.stringMatching(/Read-only|denied|No such|nonexistent/i),
      ]);
    await rig.living.narrow(1);
    expect(await rig.living.say(save('.tmp.42.0f3a'))).toMatch(/Read-only|denied/i);
    expect(readFileSync(path, 'utf8')).toBe('.tmp.1-2\n');
  });

  // From a working folder in it a program names by a short path what has none that any rule could read.

  it('writes what was granted, and says so', async () => {
    rig.living = await Living.of(rig.machine);
    const { home, project } = rig.machine;
    const seen = join(home, 'seen');
    expect(await rig.living.say(`echo x > ${seen}/file; mkdir ${seen}/d`)).toMatch(
      /(Read-only|denied).*\n.*(Read-only|denied)/,
    );
    expect(await rig.living.widen(1, 'write', seen, true)).toBe(0);
    expect(
      await rig.living.say(
        `cd ${seen}; echo x > file; echo y >> file; mkdir -p d/e; echo a > d/a; mv d/a d/b; mv d e; ln -s file link; echo z > link2; rm link2; ln file hard; python3 -c "import os; os.truncate('hard', 0)"; echo t > ${project}/temp; mv ${project}/temp moved; mkdir gone; rmdir gone; true > made.tmp.1; mv made.tmp.1 made; cd`,
      ),
    ).toBe('');
    expect(await rig.living.say(`ls -AR ${seen}`)).toBe(
      `${seen}:\ne\nfile\nhard\nlink\nmade\nmoved\n\n${seen}/e:\nb\ne\n\n${seen}/e/e:`,
    );
    const granted = rig.machine.heard.filter(({ rule }) => rule?.kind === 'grant');
    expect(granted.every(({ rule, verdict }) => rule?.index === 1 && verdict === 'recorded')).toBe(true);
    expect(new Set(granted.map(({ call }) => call))).toEqual(
      new Set(['open', 'mkdir', 'rename', 'rename-away', 'symlink', 'link', 'truncate', 'unlink', 'rmdir']),
    );
    expect(await rig.living.say(`readlink /proc/self/fd/9 9> ${seen}/file`)).toBe(`${seen}/file`);
    await rig.living.say(`exec 7>> ${seen}/file`);
    expect(await rig.living.narrow(1)).toBe(0);
    expect(
      await rig.living.say(`echo x > ${seen}/file; rm ${seen}/made; mv ${seen}/moved ${project}; echo open >&7`),
    ).toMatch(/^(.*(denied|Read-only|not permitted|cannot).*\n?){3,}$/i);
    expect(readFileSync(join(seen, 'file'), 'utf8')).toBe('open\n');
  });

  it('writes one protected name and nothing beside it, whether it is there or not', async () => {
    rig.living = await Living.of(rig.machine);
    const { project } = rig.machine;
    const settings = join(project, '.vscode/settings.json');
    expect(await rig.living.widen(1, 'write', settings)).toBe(0);
    expect(await rig.living.widen(2, 'write', join(project, '.envrc'))).toBe(0);
    expect(
      await rig.living.say(
        `echo 1 > .vscode/settings.json; echo 2 > s.tmp; mv s.tmp .vscode/settings.json; echo 3 > .envrc; echo x > .vscode/tasks.json; echo x > .vscode/other; mkdir d; echo x > d/.envrc; ln -s s .vscode/settings.json; ln .vscode/settings.json alias; ln -sf d .envrc; ls -A .vscode; ls -A d`,
      ),
    ).toMatch(/\nsettings.json\ntasks.json$/);
    expect(readFileSync(settings, 'utf8')).toBe('2\n');
    expect(readFileSync(join(project, '.envrc'), 'utf8')).toBe('3\n');
    expect(lstatSync(join(project, '.envrc')).isFile()).toBe(true);
    expect([lstatSync(settings).nlink, existsSync(join(project, 'alias'))]).toEqual([1, false]);
    expect(readFileSync(join(project, '.vscode/tasks.json'), 'utf8')).toBe('{}\n');
    expect([await rig.living.narrow(1), await rig.living.narrow(2)]).toEqual([0, 0]);
    await rig.living.say(`echo x > .vscode/settings.json; echo x > .envrc; rm .vscode/settings.json`);
    expect(readFileSync(settings, 'utf8')).toBe('2\n');
    expect(readFileSync(join(project, '.envrc'), 'utf8')).toBe('3\n');
  });

  it('changes modes and times of what was granted, and of nothing else', async () => {
    rig.living = await Living.of(rig.machine);
    const { home } = rig.machine;
    expect(await rig.living.widen(1, 'write', join(home, 'seen'), true)).toBe(0);
    expect(
      await rig.living.say(
        `cd ${home}/seen; mkdir d; chmod 700 file d; touch -d @86400 file; chmod 600 ../link-out ../plain; touch -d @86400 ../plain; cd`,
      ),
    ).toMatch(/Read-only|not permitted/);
    expect([
      lstatSync(join(home, 'seen/file')).mode & 0o777,
      lstatSync(join(home, 'seen/file')).mtimeMs,
      lstatSync(join(home, 'seen/d')).mode & 0o777,
    ]).toEqual([0o700, 86_400_000, 0o700]);
    expect(lstatSync(join(home, 'plain')).mtimeMs).not.toBe(86_400_000);
    expect(await rig.living.narrow(1)).toBe(0);
    expect(await rig.living.say(`chmod 644 ${home}/seen/file`)).toMatch(/Read-only|not permitted/);
  });

  it('gives nothing beside a grant to write: no second name, no way back, no other file by a link', async () => {
    rig.machine.file('seen/secret', 'hidden\n');
    rig.machine.hide('seen/secret');
    rig.living = await Living.of(rig.machine);
    const { home, project } = rig.machine;
    const seen = join(home, 'seen');
    const before = rig.machine.tree().filter((line) => !line.includes(`${seen}/`) && !line.includes(`${project}/`));
    expect(await rig.living.widen(1, 'write', seen, true)).toBe(0);
    const said = await rig.living.say(`
      cd ${seen}; ln -s ${home}/plain out; echo x > out; ln -s ../plain up; echo x >> up; true > ../plain; echo x > ../new; mkdir ../d; mv ../plain p; mv file ../f; rm ../plain; ln ../plain hard; ln file ${project}/hard
      ln ${project}/own hard; echo x > ${project}/own; ln ${project}/own ${project}/own2; mv ${project}/own2 moved && echo MOVED; mkdir -p ${project}/t/u; mv ${project}/t t && ls t; ln -s ${home} h; echo x > h/plain; rm h/plain; chmod 600 out; touch -d @1 up
      mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'; echo x > .env; echo x > .envrc; mkdir -p r/.git/hooks; echo x > r/.git/hooks/pre-commit; mkdir r/objects r/refs; echo ref > r/HEAD; mkdir r/hooks; echo x > secret; echo x >> secret; mv ${project}/own secret; cat <> secret; ln secret s2; rm secret; chmod 644 secret; cat secret; ls -A; cd; exec 8< ${seen}`);
    expect(said).toContain('MOVED');
    expect(said).not.toContain('hidden');
    expect(readFileSync(join(seen, 'secret'), 'utf8')).toBe('hidden\n');
    expect(rig.machine.tree().filter((line) => !line.includes(`${seen}/`) && !line.includes(`${project}/`))).toEqual(
      before,
    );
    for (const name of ['hard', 'pipe', 'socket', '.env', '.envrc', 'r/.git/hooks', 'r/hooks'])
      expect([name, existsSync(join(seen, name))]).toEqual([name, false]);
    expect(existsSync(join(project, 'hard'))).toBe(false);
    expect(lstatSync(join(seen, 'file')).nlink).toBe(1);
    expect(await rig.living.narrow(1)).toBe(0);
    await rig.living.say(
      `cd /proc/self/fd/8 && { echo x > file; echo x > new; mkdir new; rm file; mv file f; chmod 600 file; ln file l; python3 -c 'import os; os.open(".", os.O_TMPFILE | os.O_RDWR)'; cd; }`,
    );
    expect([
      readFileSync(join(seen, 'file'), 'utf8'),
      existsSync(join(seen, 'new')),
      existsSync(join(seen, 'l')),
    ]).toEqual(['seen\n', false, false]);
  });

  it('writes a mediated file freely only where the grant names it', async () => {
    execFileSync('git', ['init', '-q', rig.machine.project]);
    rig.machine.protect('config', { at: 'git-dir', treatment: 'mediate', mediator: 'git-config' });
    rig.living = await Living.of(rig.machine);
    const config = join(rig.machine.project, '.git/config');
    expect(await rig.living.widen(1, 'write', join(rig.machine.project, '.git'), true)).toBe(0);
    expect(
      await rig.living.say(
        'git config alias.x y; echo x >> .git/config; echo x > .git/hooks/pre-commit; echo ok > .git/description',
      ),
    ).toMatch(/could not[^]*denied/);
    expect(await rig.living.widen(2, 'write', config)).toBe(0);
    expect(await rig.living.say('git config alias.x y; echo "# z" >> .git/config')).toBe('');
    expect(readFileSync(config, 'utf8')).toMatch(/x = y\n# z\n$/);
    expect([await rig.living.narrow(1), await rig.living.narrow(2)]).toEqual([0, 0]);
    expect(await rig.living.say('git config alias.z y')).toContain('could not');
    expect(existsSync(join(rig.machine.project, '.git/hooks/pre-commit'))).toBe(false);
  });

  it('makes no link and no folder of one path, and no second name from one grant to another', async () => {
    rig.machine.file('other/file', 'other\n');
    rig.living = await Living.of(rig.machine);
    const { home } = rig.machine;
    expect(await rig.living.widen(1, 'write', join(home, 'new'))).toBe(0);
    expect(await rig.living.widen(2, 'write', join(home, 'seen'), true)).toBe(0);
    expect(await rig.living.widen(3, 'write', join(home, 'other'), true)).toBe(0);
    expect(
      (
        await rig.living.say(
          `ln -s ${home}/hidden ${home}/new; mkdir ${home}/new; mkdir ${home}/new.tmp.1; ln -s x ${home}/new.tmp.2; ln ${home}/seen/file ${home}/other/alias`,
        )
      ).split('\n'),
    ).toHaveLength(5);
    expect(
      await rig.living.say(
        `ln ${home}/seen/file ${home}/seen/two; mv ${home}/seen/two ${home}/other/two; mv ${home}/other/file ${home}/seen/moved; echo x > ${home}/new; cat ${home}/new`,
      ),
    ).toBe('x');
    expect([
      lstatSync(join(home, 'other/two')).nlink,
      existsSync(join(home, 'other/alias')),
      existsSync(join(home, 'seen/moved')),
    ]).toEqual([1, false, true]);
  });
});
