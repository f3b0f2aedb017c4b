// A session in a box of another program's while it lives: its hosts are widened, since the proxy is nd7's; what cannot be widened is said, with what can be done.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { until } from '../testing/recorder.fixture.js';
import { podmanEngine, standInEngine, type TestEngine } from '../testing/engines.fixture.js';
import { Desk } from '../grants/living.fixture.js';
import { EngineDesk } from './container.fixture.js';

const hasBwrap = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-net', 'true']).status === 0;
const withBwrap = hasBwrap ? describe : describe.skip;

let server: Server;
let port: number;
beforeEach(async () => {
  server = createServer((_request, response) => response.end('OUTSIDE')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as { port: number });
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

interface Asked {
  sessions: { requests: { id: string; state: string; what: string }[] }[];
}

withBwrap(`a session in bubblewrap’s box${hasBwrap ? '' : ' (bubblewrap makes no box here)'}`, () => {
  let desk: Desk;
  beforeEach(() => void (desk = new Desk(false)));
  afterEach(() => desk.end());
  const decisions = (): (string | undefined)[] =>
    desk
      .entries(desk.runs()[0] ?? '')
      .filter(({ source }) => /^(decision:grant|intent:ask)$/.test(source))
      .map(({ kind }) => kind);

  it('reaches a host while it is granted, not before and not after; connections end with the grant', async () => {
    const session = await desk.session(['--in', 'bwrap']);
    const get = () => session.do(`get('http://localhost:${port}/')`);
    expect(await get()).toBe(403);
    const { grants } = desk.json<{ grants: { id: string }[] }>(['allow', '--yes', 'net', `localhost:${port}`]);
    expect(await get()).toBe(200);
    expect(await session.do(`via('CONNECT', 'localhost:${port}', 'localhost:${port}')`)).toBe(200);
    const cut = session.do('cut');
    expect(desk.nd7(['revoke', grants[0]?.id ?? '']).stdout).toContain('1 open connection was ended');
    expect([await cut, await get()]).toEqual(['cut', 403]);
    await session.end();
    expect(decisions()).toEqual(['grant', 'revoke']);
    expect(desk.nd7(['verify', desk.runs()[0] ?? '']).status).toBe(0);
  });

  it('asks the person, who is told and answers; why says what the box is', async () => {
    const session = await desk.session(['--in', 'bwrap', '--verbose']);
    const asked = session.do(`run('/run/nd7/nd7', 'ask', '--wait', '--reason', 'docs', 'net', 'a.invalid')`);
    const requests = () => desk.json<Asked>(['grants']).sessions[0]?.requests ?? [];
    await until('it is asked', () => requests().length === 1);
    await until('the person is told', () => /asks for net a\.invalid.*nd7 allow r\d/.test(session.said));
    expect(desk.nd7(['allow', requests()[0]?.id ?? '']).status).toBe(0);
    expect(await asked).toMatchObject({ status: 0, stdout: expect.stringContaining('is granted') as string });
    // By its name: the door is the last on PATH.
    expect(await session.do(`run('nd7', 'ask', 'read', '${desk.user}/.netrc')`)).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(
        /is denied: nobody can grant that now: the box of bwrap was made at the start/,
      ) as string,
    });
    expect(await session.do(`run('/run/nd7/nd7', 'why', 'write', '/etc/x')`)).toMatchObject({
      stdout: expect.stringContaining('no grant would help while this session lives: the box of bwrap') as string,
    });
    expect(requests()).toEqual([]);
    await session.end();
    expect(decisions()).toEqual(['permission.asked', 'grant', 'permission.asked']);
  });

  it('is given no path and no socket, and whoever tries is told what can be done', async () => {
    const session = await desk.session(['--in', 'bwrap']);
    const other = join(desk.user, 'other');
    writeFileSync(other, 'x');
    for (const right of ['read', 'write'])
      expect(desk.nd7(['allow', right, other])).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(
          new RegExp(
            `would do nothing: the box of bwrap was made at the start[^]*nd7 run --in bwrap --allow ${right}:${other} `,
          ),
        ) as string,
      });
    expect(desk.json<{ error: { code: string } }>(['allow', 'write', other])).toMatchObject({
      error: { code: 'no-reach' },
    });
    expect(await session.do(`fs.writeFileSync('${other}', 'y')`)).not.toBeNull();
    await session.end();
    expect(decisions()).toEqual([]);
    // And that can be done.
    const next = await desk.session(['--in', 'bwrap', '--allow', `write:${other}`]);
    await next.do(`fs.writeFileSync('${other}', 'y')`);
    await next.end();
    expect(existsSync(other)).toBe(true);
  });

  it('is widened by nobody inside it', async () => {
    const session = await desk.session([
      '--in',
      'bwrap',
      ...['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc'].map((word) => `--in-arg=${word}`),
    ]);
    const nd7 = join(import.meta.dirname, '../../bin/nd7.js');
    expect(await session.do(`run(process.execPath, '${nd7}', 'allow', 'net', 'a.test')`)).toMatchObject({ status: 1 });
    await session.end();
    expect(decisions()).toEqual([]);
  });
});

const engines = { 'docker’s stand-in': standInEngine(), '[podman]': podmanEngine() };
afterAll(() => {
  for (const engine of Object.values(engines)) if ('remove' in engine) engine.remove();
});

describe.each(Object.entries(engines))('a session in a container of %s', (_, found) => {
  const test = 'kind' in found ? it : it.skip;
  const engine = found as TestEngine;
  let desk: EngineDesk;
  beforeEach(() => void (desk = new EngineDesk()));
  afterEach(() => desk.end());

  test(`reaches a host that is granted while it lives, and asks for another${'lacks' in found ? ` (${found.lacks})` : ''}`, async () => {
    const get = `curl -sS -m 5 -o /dev/null -w '%{http_code} ' --noproxy '' -x "$http_proxy" http://localhost:${port}/`;
    const ask = '/run/nd7/nd7 ask net b.invalid; /run/nd7/nd7 ask write /etc/x';
    const child = await desk.start(
      engine,
      `echo up; ${get} >> got; echo > ready; while [ ! -e go ]; do sleep 0.1; done; ${get} >> got; { ${ask}; } > asked`,
    );
    await until('it has tried', () => existsSync(join(desk.project, 'ready')));
    expect(desk.nd7(child, 'allow', '--yes', 'net', `localhost:${port}`)).toMatchObject({ status: 0 });
    expect(desk.nd7(child, 'allow', 'read', join(desk.user, '.ssh/id'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        new RegExp(`the box of ${engine.kind} was made at the start[^]*--in ${engine.kind} --allow`),
      ) as string,
    });
    writeFileSync(join(desk.project, 'go'), '');
    expect((await once(child, 'close'))[0]).toBe(1);
    expect(desk.read('got')).toBe('403 200 ');
    expect(desk.read('asked')).toMatch(/r\d was put to the person[^]*r\d is denied: nobody can grant that now/);
    expect(desk.log()).toMatch(/"kind":"grant"/);
  });
});
