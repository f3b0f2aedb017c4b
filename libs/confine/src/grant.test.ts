// What a living session is given from outside, and what is taken from it again, in the real boundary.
import { chmodSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import { describeLiving, Living } from './living.fixture.js';

const { ENOENT, ENOSPC, ELOOP, EPERM, ENOTSOCK, EINVAL, EOPNOTSUPP } = constants.errno;

describeLiving((rig) => {
  it('keeps every grant in force while others come and go above, below and beside it', async () => {
    rig.living = await Living.of(rig.machine);
    const hidden = join(rig.machine.home, 'hidden');
    const file = join(hidden, 'deep/er/file');
    const reads = async (): Promise<string> => rig.living.say(`cat ${file}`);
    // Above one that was there before, and the other way round; the same twice; what needs no mount.
    expect([await rig.living.widen(1, 'read', file), await rig.living.widen(2, 'read', hidden, true)]).toEqual([0, 0]);
    expect(await reads()).toBe('deep');
    expect(await rig.living.narrow(1)).toBe(0);
    expect(await reads()).toBe('deep');
    expect([
      await rig.living.widen(3, 'read', join(hidden, 'deep'), true),
      await rig.living.widen(4, 'read', file),
    ]).toEqual([0, 0]);
    expect(await rig.living.narrow(2)).toBe(0);
    expect(await reads()).toBe('deep');
    expect(await rig.living.narrow(3)).toBe(0);
    expect(await reads()).toBe('deep');
    expect([await rig.living.widen(5, 'read', file), await rig.living.narrow(4)]).toEqual([0, 0]);
    expect(await reads()).toBe('deep');
    expect([
      await rig.living.widen(6, 'read', rig.machine.project, true),
      await rig.living.widen(7, 'read', join(rig.machine.project, '.env')),
    ]).toEqual([0, 0]);
    expect([await rig.living.narrow(6), await rig.living.say('cat .env; echo x > new && cat new')]).toEqual([
      0,
      'SECRET\nx',
    ]);
    expect([await rig.living.narrow(5), await rig.living.narrow(7)]).toEqual([0, 0]);
    expect((await rig.living.say(`cat ${file} .env`)).match(/denied|No such/g)?.length).toBe(2);
    const mounts = `ls -A ${hidden}; grep -c " ${rig.machine.home}/hidden" /proc/self/mountinfo`;
    if (rig.tier === 'T1') expect(await rig.living.say(mounts)).toBe('1');
  });

  it('takes 64 grants, no more, and keeps no mount and no descriptor of them', async () => {
    const all = Array.from({ length: 65 }, (_, i) => rig.machine.file(`hidden/many/f${i}`, `${i}\n`));
    rig.living = await Living.of(rig.machine);
    const mounts = (): Promise<string> => rig.living.say('cat /proc/self/mountinfo | wc -l');
    const before = await mounts();
    // What it makes once, with the first of them; nobody but root looks into it.
    const launcher = String(rig.living.session.process.pid);
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
    expect([await rig.living.widen(99, 'read', all[0] as string), await rig.living.narrow(99)]).toEqual([0, 0]);
    const descriptors = held();
    expect(
      await Promise.all(all.map((path, i) => rig.living.widen(i + 1, i % 2 === 0 ? 'read' : 'write', path))),
    ).toEqual([...Array<number>(64).fill(0), ENOSPC]);
    expect(
      await rig.living.say(`cat ${all.slice(0, 64).join(' ')} | wc -l; echo x > ${all[1]}; echo x > ${all[0]}`),
    ).toMatch(/^64\n.*f0/);
    expect(await Promise.all(all.slice(0, 64).map((_, i) => rig.living.narrow(i + 1)))).toEqual(
      Array<number>(64).fill(0),
    );
    expect(await mounts()).toBe(before);
    expect(held()).toEqual(descriptors);
    expect(readFileSync(all[1] as string, 'utf8')).toBe('x\n');
  });

  it('lets nobody have what a name led to before or after it was granted', async () => {
    rig.living = await Living.of(rig.machine);
    const { home, project } = rig.machine;
    // The session makes the granted name this and that all the time.
    await rig.living.say(
      `mkdir a b; echo own > a/x; ln -s ${home}/hidden/deep/er/file b/x; (while :; do mv -T a c; mv -T b a; mv -T c b; done) 2> /dev/null & echo $! > pid`,
    );
    for (let i = 1; i <= 60; i++) {
      const error = await rig.living.widen(i, i % 2 === 0 ? 'read' : 'write', join(project, 'a/x'));
      // It was there outside, and a moment later not in the session's view: then no place is made for it.
      expect([0, ELOOP, ENOENT, EOPNOTSUPP]).toContain(error);
      if (error === 0) expect(await rig.living.narrow(i)).toBe(0);
    }
    expect(
      await rig.living.say('kill $(cat pid); cat a/x b/x; echo changed > a/x; echo changed > b/x; true'),
    ).not.toContain('deep');
    expect(readFileSync(join(home, 'hidden/deep/er/file'), 'utf8')).toBe('deep\n');
  });

  it('is widened and narrowed while many calls run, and each of them is done or refused', async () => {
    rig.living = await Living.of(rig.machine);
    const seen = join(rig.machine.home, 'seen');
    await rig.living.say(
      `for n in 1 2 3 4; do (i=0; while [ ! -e stop ]; do i=$((i+1)); mkdir ${seen}/$n && echo $i > ${seen}/$n/f && mv ${seen}/$n/f ${seen}/$n/g && rm ${seen}/$n/g && rmdir ${seen}/$n; echo x > own$n; mv own$n own$n.2; done) > log$n 2>&1 & done`,
    );
    for (let i = 1; i <= 40; i++) {
      expect(await rig.living.widen(i, 'write', seen, true)).toBe(0);
      expect(await rig.living.widen(100 + i, 'read', join(rig.machine.home, 'hidden'), true)).toBe(0);
      expect([await rig.living.narrow(i), await rig.living.narrow(100 + i)]).toEqual([0, 0]);
    }
    const left = readdirSync(seen, { recursive: true }).sort();
    await rig.living.say('sleep 0.2');
    expect(readdirSync(seen, { recursive: true }).sort()).toEqual(left);
    expect(
      await rig.living.say(
        'touch stop; wait; cat log* | grep -vE "Read-only|denied|No such|exists|cannot create" | head -3',
      ),
    ).toBe('');
    expect(rig.machine.heard.some(({ rule }) => rule?.kind === 'grant')).toBe(true);
  });

  it('gives nothing any more when it has ended, however that was', async () => {
    rig.living = await Living.of(rig.machine);
    const path = join(rig.machine.home, 'alone');
    expect(await rig.living.widen(1, 'read', path)).toBe(0);
    const before = readFileSync('/proc/self/mountinfo', 'utf8');
    const launcher = String(rig.living.session.process.pid);
    const supervisor = Number(readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8').split(' ')[0]);
    process.kill(supervisor, 'SIGKILL');
    expect(await rig.living.session.ended).toMatchObject({ code: 125 });
    await expect(rig.living.session.widen({ id: 2, what: 'read', path, below: false })).rejects.toThrow('has ended');
    await expect(rig.living.session.narrow(1)).rejects.toThrow('has ended');
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before);
    expect(readFileSync(path, 'utf8')).toBe('alone\n');
  });

  it('connects to a socket while it is granted, and writes in a folder that was hidden', async () => {
    rig.living = await Living.of(rig.machine);
    const hidden = join(rig.machine.home, 'hidden');
    const path = join(hidden, 'socket');
    const server = await listen(path);
    server.on('connection', (socket) => socket.end('answer'));
    const dial = `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("${path}"); print(s.recv(9).decode())'`;
    try {
      expect(await rig.living.say(dial)).toMatch(/FileNotFound|PermissionError/);
      expect(await rig.living.widen(1, 'socket', path)).toBe(0);
      expect(await rig.living.say(dial)).toBe('answer');
      expect(await rig.living.widen(2, 'write', hidden, true)).toBe(0);
      expect(
        await rig.living.say(
          `mkdir ${hidden}/d && echo x > ${hidden}/d/f && mv ${hidden}/d/f ${hidden}/new && cat ${hidden}/new; ${dial}; echo x > ${hidden}/.env; rm ${hidden}/.env`,
        ),
      ).toMatch(/^x\nanswer\n.*denied.*\n.*(denied|Read-only)/i);
      expect(readFileSync(join(hidden, '.env'), 'utf8')).toBe('SECRET\n');
      expect([await rig.living.narrow(1), await rig.living.narrow(2)]).toEqual([0, 0]);
      expect(await rig.living.say(`${dial}; ls -A ${hidden}; echo x > ${hidden}/new`)).toMatch(
        /(FileNotFound|PermissionError)[^]*\n.*(denied|Read-only|nonexistent)/,
      );
      expect(readFileSync(join(hidden, 'new'), 'utf8')).toBe('x\n');
    } finally {
      server.close();
    }
  });

  it('refuses what is not there, links, sockets as files, and nd7’s own', async () => {
    rig.living = await Living.of(rig.machine);
    const { home } = rig.machine;
    symlinkSync(join(home, 'hidden'), join(home, 'link'));
    expect(await rig.living.widen(1, 'read', join(home, 'nothing'))).toBe(ENOENT);
    expect(await rig.living.widen(1, 'read', join(home, 'link'))).toBe(ELOOP);
    expect(await rig.living.widen(1, 'read', join(home, 'link/file'))).toBe(ELOOP);
    expect(await rig.living.widen(1, 'socket', join(home, 'alone'))).toBe(ENOTSOCK);
    // Without a view a name in a hidden folder is one like others.
    expect(await rig.living.widen(99, 'write', join(home, 'hidden/new'))).toBe(rig.tier === 'T1' ? ENOENT : 0);
    for (const path of [join(home, '.nd7'), join(home, '.nd7/key'), home, '/proc/1/mem', '/dev/mem', '/sys'])
      expect(await rig.living.widen(1, 'write', path, true)).toBe(EPERM);
    const server = await listen(join(home, 'seen/socket'));
    expect(await rig.living.widen(1, 'read', join(home, 'seen/socket'))).toBe(EINVAL);
    server.close();
    expect(await rig.living.say('echo on')).toBe('on');
  });
});

function listen(path: string): Promise<Server> {
  const server = createServer();
  return new Promise((done) => server.listen(path, () => (chmodSync(path, 0o777), done(server))));
}
