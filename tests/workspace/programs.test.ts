// Each place where nd7 starts a program, and why that is none which a session has made. Who adds one says here which program that is.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

const OWN = 'nd7’s own program, which no grant reaches and whose place in a session’s reach is an alarm';
const STARTS: Readonly<Record<string, string>> = {
  'apps/agent/src/grants/notify.ts': 'found by OutsidePrograms when the session began, and looked at again',
  'libs/egress/src/secret.ts': 'what OutsidePrograms gave back as ready (apps/agent/src/confine/egress.ts)',
  'apps/agent/src/recorder/start.ts': OWN,
  'libs/confine/src/launch.ts': OWN,
  'libs/confine/src/probe.ts': OWN,
  'libs/egress/src/relay.ts': OWN,
  'libs/confine/src/seatbelt/launch.ts': OWN,
  'native/front/src/host.c': OWN,
  'native/front/src/place.c': OWN,
  'native/front/src/session.c': OWN,
  'native/shim/src/recorder.c': OWN,
  'native/shim/src/fallback.c': OWN,
  'apps/agent/src/recorder/probe.ts': 'nd7 doctor, typed outside: the registered hook, as the client runs it',
  'apps/agent/src/selftest/selftest.ts': OWN,
  'apps/agent/src/selftest/world.ts': 'nd7 selftest: programs of its own world',
  'apps/agent/src/selftest/inside.ts': 'nd7 selftest, inside a boundary',
  'libs/kernel/src/process.ts': '/bin/ps by its whole path, on macOS',
  'libs/postgres/src/binaries.ts': 'a vault’s development server: no part of a session (plane)',
  'libs/postgres/src/cluster.ts': 'a vault’s development server: no part of a session (plane)',
  'native/launch/src/agent.c': 'inside the boundary',
  'native/launch/src/keeper.c': 'inside the boundary',
  'native/shim/src/box.c': 'inside a box: the program that was typed',
  'apps/agent/src/confine/box-container.ts': 'the engine’s program, as the box’s',
  'apps/agent/src/confine/run-bwrap.ts': 'the box’s program, by its whole path, which no session may write (Reach)',
  'native/shim/src/exec.c': 'inside the boundary: a stub that runs its command itself',
  'native/probes/src/probes.c': 'inside the boundary, and outside from a world of the self-test’s own',
};

const TYPESCRIPT =
  /import (?!type)[^;]*(?<!type )\b(?:spawn|spawnSync|exec|execSync|execFile|execFileSync|fork)\b[^;]*from 'node:child_process'|\bprocess\.execve\(/;
const NATIVE = /\b(?:exec(?:v|ve|vp|vpe|veat|l|lp|le)|fexecve|posix_spawnp?|popen|system)\s*\(|syscall\(SYS_execve/;

function sources(folder: string, ends: RegExp): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && ends.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !/\/(node_modules|dist|build|test|testing|fuzz)\/|\.(test|fixture)\.ts$/.test(path));
}

const read = (path: string): string =>
  readFileSync(join(root, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '');

it('a program is started where it is known which', () => {
  const parts = ['apps/agent', 'libs', 'native'];
  const found = [
    ...parts.flatMap((part) => sources(part, /\.ts$/)).filter((path) => TYPESCRIPT.test(read(path))),
    ...sources('native', /\.[ch]$/).filter((path) => NATIVE.test(read(path))),
  ];
  expect(found.length).toBeGreaterThan(15);
  expect(found.filter((path) => STARTS[path] === undefined)).toEqual([]);
  expect(Object.keys(STARTS).filter((path) => !found.includes(path))).toEqual([]);
});
