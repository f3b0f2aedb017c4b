// Somebody who types nd7: a home with nd7's in it, a project, and a kernel that can be made to refuse what containers refuse.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BIN } from './recorder.fixture.js';

export interface Ended {
  status: number | null;
  stdout: string;
  stderr: string;
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

/** Instructions of call filters, by x86_64 numbers: clone() with namespaces is EPERM, and seccomp() with a listener too. */
const FILTERS = {
  namespaces:
    '(0x20, 0, 0, 0), (0x15, 0, 3, 56), (0x20, 0, 0, 16), (0x45, 0, 1, 0x10020000), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)',
  'namespaces and supervisors':
    '(0x20, 0, 0, 0), (0x15, 0, 2, 56), (0x20, 0, 0, 16), (0x45, 3, 4, 0x10020000), (0x15, 0, 3, 317), (0x20, 0, 0, 24), (0x45, 0, 1, 8), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)',
} as const;

const under = (filter: string): string => `
import ctypes, os, struct, sys
code = [${filter}]
program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *i) for i in code))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
head = struct.pack('HxxxxxxQ', len(code), ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.create_string_buffer(head), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
`;

export class Person {
  /** The home. */
  readonly user: string;
  readonly project: string;

  /** `folder`: where the home lies; what is hidden in the temporary folder could be read in a tier without a view, since sessions may write there. */
  constructor(folder = '/var/tmp') {
    this.user = realpathSync(mkdtempSync(join(folder, 'nd7-person-')));
    this.project = join(this.user, 'project');
    mkdirSync(this.project);
    mkdirSync(join(this.user, '.nd7'), { mode: 0o700 });
  }

  get environment(): Record<string, string> {
    return { PATH, HOME: this.user };
  }

  policy(document: object): void {
    writeFileSync(join(this.user, '.nd7/policy.jsonc'), JSON.stringify({ nd7: 1, ...document }), { mode: 0o600 });
  }

  nd7(args: readonly string[], path = PATH): Ended {
    return this.#run(process.execPath, [BIN, ...args], path);
  }

  /** The same where the kernel refuses something. */
  refused(what: keyof typeof FILTERS, args: readonly string[]): Ended {
    return this.#run('python3', ['-c', under(FILTERS[what]), process.execPath, BIN, ...args], PATH);
  }

  /** Lines of all chains. */
  log(): string[] {
    const sessions = join(this.user, '.nd7/sessions');
    return readdirSync(sessions)
      .map((session) => readFileSync(join(sessions, session, 'log.jsonl'), 'utf8'))
      .flatMap((text) => text.split('\n'));
  }

  end(): void {
    rmSync(this.user, { recursive: true, force: true });
  }

  #run(program: string, args: readonly string[], path: string): Ended {
    const env = { ...this.environment, PATH: path };
    const how = { cwd: this.project, encoding: 'utf8' as const, env, input: '' };
    const { status, stdout, stderr } = spawnSync(program, args, how);
    return { status, stdout, stderr };
  }
}
