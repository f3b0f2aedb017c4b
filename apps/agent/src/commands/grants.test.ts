// `nd7 allow`, `deny`, `revoke` and `grants` as a person types them while sessions live.
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { join } from 'node:path';
import { until } from '../testing/recorder.fixture.js';
import { Desk, type Session } from '../grants/living.fixture.js';

let desk: Desk;
let server: Server;
let port: number;
beforeEach(async () => {
  desk = new Desk();
  server = createServer((_request, response) => response.end('OUTSIDE')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as { port: number });
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  desk.end();
});

const canConfine = process.platform === 'linux' ? describe : describe.skip;
const get = (session: Session): Promise<unknown> => session.do(`get('http://localhost:${port}/')`);
interface Listed {
  sessions: {
    session: string;
    grants: { id: string; state: string; uses: number; by: { user: string; pid: number } }[];
    denials: unknown[];
  }[];
}

interface Asked {
  sessions: { requests: { id: string; type: string; state: string }[] }[];
}

canConfine('a living session', () => {
  it('reaches a host while it is granted, not before and not after, and its chain says who did that', async () => {
    const session = await desk.session();
    expect(await get(session)).toBe(403);
    expect(desk.nd7(['allow', 'net', `localhost:${port}`])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/nothing was granted.*trusts its own users.*\n.*--yes/) as string,
    });
    expect(await get(session)).toBe(403);
    const granted = desk.json<{ grants: { id: string }[] }>(['allow', '--yes', 'net', `localhost:${port}`]);
    const [{ id }] = granted.grants as [{ id: string }];
    expect(await get(session)).toBe(200);
    expect(await session.do(`via('CONNECT', 'localhost:${port}', 'localhost:${port}')`)).toBe(200);
    const [listed] = desk.json<Listed>(['grants']).sessions;
    expect(listed?.grants).toMatchObject([{ id, state: 'living', uses: 2, by: { pid: expect.any(Number) as number } }]);
    const cut = session.do('cut');
    expect(desk.nd7(['revoke', id])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('1 open connection was ended') as string,
    });
    expect([await cut, await get(session)]).toEqual(['cut', 403]);
    expect(desk.nd7(['revoke', id])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no living grant') as string,
    });
    expect(session.decisions()).toEqual([`grant ${id} localhost:${port}`, `revoke ${id} localhost:${port} revoked`]);
    await session.end();
    const [run = ''] = desk.runs();
    expect(desk.nd7(['verify', run]).status).toBe(0);
    expect(desk.nd7(['log', run]).stdout).toMatch(
      new RegExp(`decision +grant +${id} allow net localhost:${port} for session`),
    );
    expect(readdirSync(join(desk.home, 'run')).filter((name) => /^[sc]-/.test(name))).toEqual([]);
    expect(desk.json<Listed>(['grants']).sessions).toEqual([]);
  });

  it('with no host in its policy has a proxy all the same, which refuses', async () => {
    const session = await desk.session(['--profile', 'offline']);
    expect(await session.do("via('CONNECT', 'a.invalid:443', 'a.invalid:443')")).toBe(403);
    expect(desk.nd7(['allow', 'net', 'a.invalid']).status).toBe(0);
    // Granted, and then there is no such name.
    expect(await session.do("via('CONNECT', 'a.invalid:443', 'a.invalid:443')")).not.toBe(200);
    const [listed] = desk.json<Listed>(['grants']).sessions;
    expect(listed?.grants).toMatchObject([{ state: 'living' }]);
    const [run = ''] = desk.runs();
    const reasons = desk
      .entries(run)
      .filter(({ source }) => source === 'decision:egress')
      .map(({ data }) => data['reason']);
    expect(reasons).toEqual(['no-rule', 'no-address']);
  });

  it('loses what was granted for a time when that is over', async () => {
    const session = await desk.session();
    desk.nd7(['allow', '--yes', '--for', '2s', 'net', `localhost:${port}`]);
    expect(await get(session)).toBe(200);
    await until('the grant is over', async () => (await get(session)) === 403);
    await until('its end is recorded', () => session.decisions().some((text) => text.endsWith('expired')));
    expect(desk.nd7(['allow', '--for', 'call', 'net', 'a.test'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no agent is attached') as string,
    });
  });

  it('is denied a host that its policy allows', async () => {
    desk.policy({ network: { loopback: [port] } });
    const session = await desk.session();
    expect(await get(session)).toBe(200);
    expect(desk.nd7(['deny', 'net', `localhost:${port}`]).status).toBe(0);
    expect(await get(session)).toBe(403);
    expect(desk.nd7(['revoke', '--all']).status).toBe(0);
    expect(await get(session)).toBe(200);
  });

  it('is found by the project one is in; of several one has to say which', async () => {
    const other = join(desk.user, 'other');
    mkdirSync(other);
    const [one, two] = [await desk.session(), await desk.session([], other)];
    expect(desk.nd7(['allow', '--yes', 'net', `localhost:${port}`], other).status).toBe(0);
    expect([await get(one), await get(two)]).toEqual([403, 200]);
    const unsure = desk.nd7(['revoke', '--all'], desk.user);
    expect(unsure).toMatchObject({ status: 2 });
    const ids = [...unsure.stderr.matchAll(/--session (run-[0-9a-f]{16})/g)].map(([, id]) => id);
    expect(ids.sort()).toEqual(desk.runs().sort());
    const [here] = desk.json<Listed>(['grants']).sessions.filter(({ grants }) => grants.length > 0);
    expect(desk.nd7(['revoke', '--all', '--session', here?.session ?? ''], desk.user).status).toBe(0);
    expect(await get(two)).toBe(403);
    expect(desk.nd7(['grants', '--session', 'run-nope'])).toMatchObject({ status: 2 });
  });

  it('sees nothing of its control socket, and whoever speaks to one from inside is not heard', async () => {
    const [one] = [await desk.session(), await desk.session()];
    const folders = readdirSync(join(desk.home, 'run')).filter((name) => /^c-[0-9a-f]{16}$/.test(name));
    expect(folders).toHaveLength(2);
    const seen = await one.do(
      `[...fs.readdirSync(${JSON.stringify(join(desk.home, 'run'))}), ...fs.readdirSync('/run/nd7')]`,
    );
    expect((seen as string[]).filter((name) => name.startsWith('c-') || name === 'control')).toEqual([]);
    for (const folder of folders)
      expect(
        await one.do(
          `new Promise((done) => require('net').connect(${JSON.stringify(join(desk.home, 'run', folder, 'control'))}).on('error', (error) => done(error.code)).on('connect', () => done('heard')))`,
        ),
      ).not.toBe('heard');
  });

  it('whose front is killed ends, and leaves no socket that answers', async () => {
    const session = await desk.session();
    expect(desk.nd7(['allow', 'net', 'a.test']).status).toBe(0);
    const pid = await session.do('process.ppid');
    expect(typeof pid).toBe('number');
    session.child.kill('SIGKILL');
    await once(session.child, 'close');
    expect(desk.nd7(['allow', 'net', 'b.test'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no session runs') as string,
    });
    const next = await desk.session();
    const [listed, ...more] = desk.json<Listed>(['grants']).sessions;
    expect([listed?.grants, more]).toEqual([[], []]);
    expect(readdirSync(join(desk.home, 'run')).filter((name) => /^c-/.test(name))).toHaveLength(1);
    await next.end();
  });

  it.each([
    ['required', 1],
    ['best-effort', 0],
  ])('whose record cannot be written (%s) is widened only where the policy lets that be', async (recording, status) => {
    desk.policy({ recording });
    const session = await desk.session();
    const [run = ''] = desk.runs();
    // A log that somebody has cut is not written to any more.
    truncateSync(join(desk.home, 'sessions', run, 'log.jsonl'));
    expect(desk.nd7(['allow', '--yes', 'net', `localhost:${port}`]).status).toBe(status);
    const [listed] = desk.json<Listed>(['grants']).sessions;
    expect(listed?.grants.length).toBe(1 - status);
    // Of an answer that cannot be recorded nothing goes out either, where that is required.
    if (recording === 'required') expect(await get(session)).not.toBe(200);
    else expect(await get(session)).toBe(200);
    expect(desk.nd7(['revoke', '--all']).status).toBe(0);
    expect(await get(session)).not.toBe(200);
  });

  it('that is stopped does not answer, and is said to be', async () => {
    const session = await desk.session();
    session.child.kill('SIGSTOP');
    expect(desk.nd7(['allow', 'net', 'a.test'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('fg') as string,
    });
    session.child.kill('SIGCONT');
    expect(desk.nd7(['allow', 'net', 'a.test']).status).toBe(0);
  });

  it('finds what asks by its name, where no nd7 is on PATH', async () => {
    const session = await desk.session();
    expect(
      await session.do(
        "run('sh', '-c', 'command -v nd7 && nd7 why a.invalid && nd7 ask net a.invalid').stdout.split('\\n')",
      ),
    ).toEqual([
      '/run/nd7/nd7',
      'denied  no rule allows a.invalid:443',
      expect.stringContaining('/run/nd7/nd7 ask net a.invalid:443'),
      expect.stringMatching(/^nd7: r1 was put to the person/),
      '',
    ]);
  });

  it('has nothing run outside by a name that it can put on the person’s PATH', async () => {
    const bin = join(desk.project, 'node_modules/.bin');
    desk.variables = { PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/none' };
    const ran = join(desk.project, 'ran');
    const session = await desk.session();
    await session.do(`fs.mkdirSync('${bin}', { recursive: true })`);
    await session.do(`fs.writeFileSync('${bin}/notify-send', '#!/bin/sh\\n: > ${ran}', { mode: 0o755 })`);
    await session.do("run('/run/nd7/nd7', 'ask', 'net', 'a.invalid').status");
    expect(desk.json<Asked>(['grants']).sessions[0]?.requests).toHaveLength(1);
    await session.end();
    expect(existsSync(ran)).toBe(false);
  });

  it('says at its end what was granted, and the text that keeps it', async () => {
    const session = await desk.session(['-v']);
    desk.nd7(['allow', 'net', 'a.test', 'b.test:8443']);
    const said = await session.end();
    expect(said).toContain('nd7: granted in this session: net a.test:443; net b.test:8443');
    expect(said).toContain('"network":{"allow":["a.test:443","b.test:8443"]}');
    expect(said).not.toContain('"nd7"');
  });
});

canConfine('paths and sockets of a living session', () => {
  const text = (path: string): string => JSON.stringify(path);
  beforeEach(() => {
    desk.end();
    desk = new Desk(false);
    mkdirSync(join(desk.user, '.ssh'));
    mkdirSync(join(desk.user, 'out'));
    writeFileSync(join(desk.user, '.ssh/config.d'), 'SECRET');
    writeFileSync(join(desk.user, 'out/there'), 'OLD');
  });

  it('a file outside is made and written while that is granted, for every program, and the disk outside has it', async () => {
    const session = await desk.session();
    const path = join(desk.user, 'out/new');
    const write = (what = path) => session.do(`fs.writeFileSync(${text(what)}, 'NEW')`);
    expect(await write()).toBe('EROFS');
    const { grants } = desk.json<{ grants: { id: string }[] }>(['allow', 'write', path]);
    expect(await write()).toBeNull();
    expect([readFileSync(path, 'utf8'), await write(join(desk.user, 'out/other'))]).toEqual(['NEW', 'EROFS']);
    expect(await session.do(`run('sh', '-c', 'echo more >> ${path}').status`)).toBe(0);
    const [listed] = desk.json<Listed>(['grants']).sessions;
    expect(listed?.grants[0]?.uses).toBeGreaterThanOrEqual(2);
    expect(desk.nd7(['why', '--session', '--write', path]).stdout).toMatch(/^allowed .*\n.*grant/);
    expect(desk.nd7(['revoke', grants[0]?.id ?? '']).stdout).toContain('stay open until they close them');
    expect(await write()).toBe('EROFS');
    expect(readFileSync(path, 'utf8')).toBe('NEWmore\n');
    const [run = ''] = desk.runs();
    const done = desk.entries(run).filter(({ source, data }) => source === 'decision:names' && data['path'] === path);
    expect(done[0]?.data).toMatchObject({ verdict: 'record', grant: 1 });
    await session.end();
    expect(desk.nd7(['verify', run]).status).toBe(0);
  });

  it('a secret is read with a yes, and hidden again; a descriptor that was opened survives', async () => {
    const session = await desk.session();
    const path = join(desk.user, '.ssh/config.d');
    const read = () => session.do(`fs.readFileSync(${text(path)}, 'utf8')`);
    expect(await read()).toMatch(/ENOENT|EACCES/);
    expect(desk.nd7(['allow', 'read', path])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('among the secrets') as string,
    });
    expect(await read()).toMatch(/ENOENT|EACCES/);
    expect(desk.nd7(['allow', '--yes', 'read', path]).status).toBe(0);
    expect([await read(), await session.do(`globalThis.fd = fs.openSync(${text(path)})`)]).toEqual([
      'SECRET',
      expect.any(Number),
    ]);
    expect(await session.do(`fs.writeFileSync(${text(path)}, '')`)).toMatch(/EROFS|EACCES/);
    desk.nd7(['revoke', '--all']);
    expect(await read()).toMatch(/ENOENT|EACCES/);
    expect(await session.do("fs.readFileSync(fd, 'utf8')")).toBe('SECRET');
  });

  it('a folder is granted with what is in it, but not what runs later, nor what the rules hold', async () => {
    const session = await desk.session();
    expect(desk.nd7(['allow', 'write', join(desk.user, 'out')])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('--below') as string,
    });
    expect(desk.nd7(['allow', '--below', '--for', '3s', 'write', join(desk.user, 'out')]).status).toBe(0);
    const make = (name: string) =>
      session.do(`fs.mkdirSync(${text(join(desk.user, 'out', name))}, { recursive: true })`);
    expect([typeof (await make('a/b')), await make('.vscode')]).toEqual(['string', 'EACCES']);
    expect(
      await session.do(
        `fs.renameSync(${text(join(desk.user, 'out/there'))}, ${text(join(desk.user, 'out/a/b/there'))})`,
      ),
    ).toBeNull();
    const touch = () => session.do(`fs.writeFileSync(${text(join(desk.user, 'out/late'))}, '')`);
    await until('it is over', async () => (await touch()) === 'EROFS');
    expect(readFileSync(join(desk.user, 'out/a/b/there'), 'utf8')).toBe('OLD');
    for (const [path, said] of [
      [desk.home, /nd7’s own/],
      [desk.user, /nd7’s own/],
      ['/proc/sys', /cannot be granted|could not/],
    ] as const)
      expect(desk.nd7(['allow', '--yes', '--below', 'write', path])).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(said) as string,
      });
  });

  it('a link that the session made is not followed without a word', async () => {
    const session = await desk.session();
    await session.do(`fs.symlinkSync(${text(join(desk.user, 'out/there'))}, 'harmless')`);
    expect(desk.nd7(['allow', 'write', 'harmless'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/harmless leads by a link to .*out\/there/) as string,
    });
    expect(await session.do("fs.writeFileSync('harmless', 'X')")).toBe('EROFS');
  });

  it('a socket is connected to while it is granted', async () => {
    const path = join(desk.user, 'out/socket');
    const heard = createSocket((socket) => socket.end('HEARD')).listen(path);
    await once(heard, 'listening');
    try {
      const session = await desk.session();
      const connect = () =>
        session.do(
          `new Promise((done) => { const s = require('net').connect(${text(path)}); s.on('error', (error) => done(error.code)).on('data', (bytes) => done(String(bytes))); })`,
        );
      expect(await connect()).not.toBe('HEARD');
      expect(desk.nd7(['allow', 'socket', path])).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('outside the boundary') as string,
      });
      expect(desk.nd7(['allow', '--yes', 'socket', path]).status).toBe(0);
      expect(await connect()).toBe('HEARD');
      desk.nd7(['revoke', '--all']);
      expect(await connect()).not.toBe('HEARD');
    } finally {
      heard.close();
    }
  });

  it('what is asked inside is granted by its number, and whoever waits goes on', async () => {
    const session = await desk.session();
    const path = join(desk.user, 'out/deep/er/x');
    const asked = session.do(
      `new Promise((done) => { const child = require('child_process').spawn('/run/nd7/nd7', ['ask', '--wait', '--reason', 'for \u001b[2J it', 'write', ${text(path)}]); child.on('close', done); })`,
    );
    await until('it is asked', () => desk.json<Asked>(['grants']).sessions[0]?.requests.length === 1);
    const [request] = desk.json<Asked>(['grants']).sessions[0]?.requests ?? [];
    expect(request).toMatchObject({
      id: 'r1',
      type: `nd7 allow write --below ${join(desk.user, 'out/deep')}`,
      state: 'pending',
    });
    expect(desk.nd7(['grants']).stdout).toContain('for ⟦ESC⟧[2J it');
    expect(desk.nd7(['allow', 'r1']).status).toBe(0);
    expect(await asked).toBe(0);
    expect(await session.do(`fs.mkdirSync(${text(join(path, '..'))}, { recursive: true })`)).toBe(
      join(desk.user, 'out/deep'),
    );
    expect(await session.do(`fs.writeFileSync(${text(path)}, '')`)).toBeNull();
    const [run = ''] = desk.runs();
    expect(desk.entries(run).filter(({ source }) => source === 'intent:ask')).toMatchObject([
      { kind: 'permission.asked', data: { path, call: 'write' }, peer: { uid: process.geteuid?.() } },
    ]);
  });
});

canConfine('nd7 run --allow', () => {
  it('widens the session from its start, above what the policy says', async () => {
    desk.end();
    desk = new Desk(false);
    desk.policy({ network: { only: ['github.com'] } });
    const [out, aside] = [join(desk.user, 'out'), join(desk.user, 'aside')];
    for (const folder of [out, aside]) mkdirSync(folder);
    const session = await desk.session(['--allow', `net:localhost:${port}`, '--allow', `write:${out}`]);
    expect(await get(session)).toBe(200);
    const write = (folder: string) => session.do(`fs.writeFileSync(${JSON.stringify(join(folder, 'x'))}, '')`);
    expect([await write(out), await write(aside)]).toEqual([null, 'EROFS']);
    expect(existsSync(join(out, 'x'))).toBe(true);
  });

  it.each(['nothing', 'exec:/bin/sh', 'read:/no/such/file', 'net:a b', ':x'])(
    '%s is refused before anything starts',
    (spec) => {
      expect(desk.nd7(['run', '--allow', spec, '--', 'true'])).toMatchObject({ status: 2, stdout: '' });
    },
  );
});
