// A machine within this machine: a mount namespace in which root may write to /etc, /usr/local/lib and /opt, and nobody else sees it.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const REPOSITORY = join(import.meta.dirname, '../..');
/** An ordinary user who stands in the password file in there and nowhere else. */
export const USER = 4711;

/** Why there can be no such machine here; undefined where there can. */
export function whyNoMachine(): string | undefined {
  if (process.platform !== 'linux') return 'mount namespaces are Linux’s';
  if (process.geteuid?.() !== 0) return 'only root can install for everybody';
  const tried = spawnSync('unshare', ['-m', 'true'], { encoding: 'utf8' });
  return tried.status === 0 ? undefined : `no mount namespace can be made: ${tried.error?.message ?? tried.stderr}`;
}

export interface Ran {
  status: number;
  out: string;
  err: string;
}

export class PrivateMachine {
  /** nd7 and Node where everybody can run them, whatever this checkout's folder lets through. */
  readonly node = '/opt/node';
  readonly nd7 = '/opt/nd7/apps/agent/bin/nd7.js';

  private constructor(private readonly holder: ChildProcess) {}

  /** `home` is the user's; `programs` are further files to be run by everybody, by name under /opt. */
  static async make(scratch: string, home: string, programs: Record<string, string>): Promise<PrivateMachine> {
    mkdirSync(scratch, { recursive: true, mode: 0o755 });
    const bound = Object.entries({ node: process.execPath, ...programs });
    const setUp = [
      'set -e',
      'mount --make-rprivate /',
      'mount -t tmpfs tmpfs "$1"',
      'chmod 755 "$1"; mkdir "$1/etc" "$1/lib" "$1/opt"',
      'cp -a /etc/. "$1/etc"; rm -rf "$1/etc/claude-code"',
      `echo 'dev:x:${USER}:${USER}::${home}:/bin/sh' >> "$1/etc/passwd"`,
      'for entry in /usr/local/lib/*; do [ -d "$entry" ] || continue; mkdir "$1/lib/${entry##*/}"; mount --rbind "$entry" "$1/lib/${entry##*/}"; done',
      'rmdir "$1/lib/nd7" 2>/dev/null || true',
      'mkdir -p "$1/opt/nd7"; mount --rbind "$2" "$1/opt/nd7"',
      ...bound.map(([name, path]) => `touch "$1/opt/${name}"; mount --bind '${path}' "$1/opt/${name}"`),
      'mount --rbind "$1/etc" /etc; mount --rbind "$1/lib" /usr/local/lib; mkdir -p /opt; mount --rbind "$1/opt" /opt',
      'echo ready; exec sleep infinity',
    ];
    const holder = spawn('unshare', ['-m', 'sh', '-c', setUp.join('\n'), 'sh', scratch, REPOSITORY], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    holder.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await new Promise<void>((resolve, reject) => {
      holder.stdout.once('data', () => resolve());
      holder.once('exit', () => reject(new Error(`no machine within this one: ${said}`)));
    });
    return new PrivateMachine(holder);
  }

  /** Runs something in here as a user, to its end. */
  run(uid: number, cwd: string, env: NodeJS.ProcessEnv, command: string, ...args: string[]): Ran {
    const as = uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const inside = [...as, 'sh', '-c', 'cd "$1"; shift; exec "$@"', 'sh', cwd, command, ...args];
    const words = ['-t', String(this.holder.pid), '-m', '--wd=/', '--', ...inside];
    const ran = spawnSync('nsenter', words, { env, encoding: 'utf8', maxBuffer: 1 << 28, timeout: 120_000 });
    return { status: ran.status ?? 128, out: ran.stdout, err: ran.stderr };
  }

  end(): void {
    this.holder.kill('SIGKILL');
  }
}
