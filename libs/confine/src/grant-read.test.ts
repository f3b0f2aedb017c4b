// What is granted to be read in a living session, in the real boundary.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { constants } from 'node:os';
import { basename, join } from 'node:path';
import { describeLiving, Living, untilAsync } from './living.fixture.js';

const { ENAMETOOLONG, ENOENT, ELOOP, EISDIR, EEXIST } = constants.errno;

describeLiving((rig) => {
  it('reads what was covered, what lies below a cover, what was masked, until it is taken back', async () => {
    rig.living = await Living.of(rig.machine);
    const { home, project } = rig.machine;
    const paths = [`${home}/alone`, `${home}/hidden/deep/er/file`, `${project}/.env`];
    const look = `cat ${paths.join(' ')}`;
    expect((await rig.living.say(look)).match(/denied|No such/g)?.length).toBe(3);
    expect(await Promise.all(paths.map((path, i) => rig.living.widen(i + 1, 'read', path)))).toEqual([0, 0, 0]);
    expect(await rig.living.say(look)).toBe('alone\ndeep\nSECRET');
    expect(
      await rig.living.say(
        `for f in ${paths.join(' ')}; do echo x >> $f; echo x > $f; rm -f $f; done; ls -A ${home}/hidden`,
      ),
    ).toMatch(rig.tier === 'T1' ? /^([^\n]*(denied|Read-only|busy)[^\n]*\n){7,}deep$/i : /^([^\n]*denied\n){9}/);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(['alone\n', 'deep\n', 'SECRET\n']);
    await rig.living.say(`exec 7< ${home}/alone`);
    expect(await Promise.all([1, 2, 3].map((id) => rig.living.narrow(id)))).toEqual([0, 0, 0]);
    expect((await rig.living.say(look)).match(/denied|No such/g)?.length).toBe(3);
    expect(await rig.living.say(`cat <&7; cat ${home}/hidden/deep/er/file`)).toMatch(/^alone\n.*(denied|No such)/);
    expect(await rig.living.narrow(1)).toBe(ENOENT);
  });

  it('reads no folder that reaches deeper than a path does: what is masked there could not be covered', async () => {
    rig.living = await Living.of(rig.machine);
    const hidden = join(rig.machine.home, 'hidden');
    const descend = `cd ${hidden} && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir -p ${'d'.repeat(240)}; cd ${'d'.repeat(240)}; done`;
    const outside = (script: string): Buffer => execFileSync('/bin/sh', ['-c', script], { ...rig.user, stdio: 'pipe' });
    outside(`${descend}; echo SECRET > .env`);
    try {
      expect(await rig.living.widen(1, 'read', hidden, true)).toBe(rig.tier === 'T1' ? ENAMETOOLONG : 0);
      expect(await rig.living.say(`${descend} 2> /dev/null; cat .env; cd`)).not.toContain('SECRET');
      expect(await rig.living.widen(2, 'read', join(hidden, 'deep'), true)).toBe(0);
    } finally {
      outside(`rm -rf ${hidden}/ddd*`);
    }
  });

  it('reads a folder with all below it, but not what is masked or a socket in it', async () => {
    rig.living = await Living.of(rig.machine);
    const hidden = join(rig.machine.home, 'hidden');
    const server = await listen(join(hidden, 'deep/socket'));
    try {
      expect(await rig.living.widen(1, 'read', hidden)).toBe(EISDIR);
      expect(await rig.living.widen(1, 'read', hidden, true)).toBe(0);
      expect(await rig.living.widen(1, 'read', hidden, true)).toBe(EEXIST);
      rig.late('hidden/later');
      expect(
        await rig.living.say(
          `cd ${hidden}; cat file deep/er/file later; cat .env; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' 2> /dev/null || echo no socket; echo x > new; cd`,
        ),
      ).toMatch(/^hidden\ndeep\nlate\ncat: .*denied\nno socket\n.*(Read-only|denied)/i);
      expect(await rig.living.widen(2, 'read', join(hidden, '.env'))).toBe(0);
      expect(await rig.living.widen(3, 'socket', join(hidden, 'deep/socket'))).toBe(0);
      expect(
        await rig.living.say(
          `cat ${hidden}/.env; cd ${hidden}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' && echo socket; cd`,
        ),
      ).toBe('SECRET\nsocket');
      expect(await rig.living.narrow(1)).toBe(0);
      expect(
        await rig.living.say(
          `cat ${hidden}/.env; cd ${hidden}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("deep/socket")' && echo socket; cd; cat ${hidden}/file`,
        ),
      ).toMatch(/^SECRET\nsocket\n.*(No such|denied)/);
      expect([await rig.living.narrow(2), await rig.living.narrow(3)]).toEqual([0, 0]);
      expect(await rig.living.say(`cat ${hidden}/file ${hidden}/.env`)).toMatch(
        /^cat: .*(No such|denied).*\ncat: .*(No such|denied)/,
      );
    } finally {
      server.close();
    }
  });

  it('shows a file that the host puts in the place of a granted one, and masks it again afterwards', async () => {
    rig.living = await Living.of(rig.machine);
    const { home, project } = rig.machine;
    const paths = [join(home, 'alone'), join(project, '.env'), join(home, 'hidden/deep/er/file')];
    expect(await Promise.all(paths.map((path, i) => rig.living.widen(i + 1, 'read', path)))).toEqual([0, 0, 0]);
    paths.forEach((path) => renameSync(rig.late(`other-${basename(path)}`, `new ${basename(path)}\n`), path));
    await untilAsync(async () => (await rig.living.say(`cat ${paths.join(' ')}`)) === 'new alone\nnew .env\nnew file');
    rmSync(paths[0] as string);
    await untilAsync(async () => (await rig.living.say(`cat ${paths[0]}`)).includes('cat:'));
    rig.late('alone', 'once more\n');
    await untilAsync(async () => (await rig.living.say(`cat ${paths[0]}`)) === 'once more');
    for (const id of [1, 2, 3]) expect(await rig.living.narrow(id)).toBe(0);
    expect((await rig.living.say(`cat ${paths.slice(1).join(' ')}`)).match(/denied|No such/g)?.length).toBe(2);
  });

  if (rig.tier === 'T1')
    it('makes a place in the session’s own temporary folder, and takes it away', async () => {
      rig.living = await Living.of(rig.machine);
      const outside = mkdtempSync('/var/tmp/nd7-grant-');
      try {
        chmodSync(outside, 0o755);
        writeFileSync(join(outside, 'file'), 'outside\n', { mode: 0o644 });
        expect(await rig.living.say(`ls -A /var/tmp; mkdir ${outside}; echo own > ${outside}/own`)).toBe('');
        expect(await rig.living.widen(1, 'read', join(outside, 'file'))).toBe(0);
        expect(await rig.living.say(`cat ${outside}/*; rm -rf ${outside}`)).toMatch(
          /^outside\nown\n.*(busy|Read-only|denied)/,
        );
        expect(await rig.living.narrow(1)).toBe(0);
        expect(
          await rig.living.say(`ls -A ${outside}; rm -rf ${outside}; ln -s ${rig.machine.home}/hidden ${outside}`),
        ).toBe('');
        expect(await rig.living.widen(2, 'read', join(outside, 'file'))).toBe(ELOOP);
        expect(await rig.living.say(`rm ${outside}; ls -A /var/tmp`)).toBe('');
        expect(await rig.living.widen(3, 'read', outside, true)).toBe(0);
        expect(await rig.living.say(`cat ${outside}/file`)).toBe('outside');
        expect([await rig.living.narrow(3), await rig.living.say('ls -A /var/tmp')]).toEqual([0, '']);
        expect(readdirSync(outside)).toEqual(['file']);
      } finally {
        rmSync(outside, { recursive: true });
      }
    });
});

function listen(path: string): Promise<Server> {
  const server = createServer();
  return new Promise((done) => server.listen(path, () => (chmodSync(path, 0o777), done(server))));
}
