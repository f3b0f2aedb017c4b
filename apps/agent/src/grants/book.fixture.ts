// A book of grants over a small project on disk, with a record and a supervisor that a test can make fail.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile, readPolicy, type CompileInput } from '@nd7/policy';
import type { Author } from './author.js';
import { GrantBook, type BookParts } from './book.js';
import type { Wanted } from './wanted.js';

export const ADA: Author = { user: 'ada', uid: 1000, pid: 7, start: '1', tty: 'pts/1', program: 'node', parent: null };

export const net = (what: string): Wanted => ({ right: 'net', what, below: false, raw: false });
export const file = (right: 'read' | 'write', what: string, below = false): Wanted => ({
  right,
  what,
  below,
  raw: false,
});

const made: string[] = [];
export function removeMade(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** What happened, in its order: `note grant g1`, `widen 1 write /x`, `narrow 1`, `recheck`. */
export class TestBook {
  readonly log: string[] = [];
  readonly entries: { kind: string; data: Record<string, unknown>; source: string }[] = [];
  readonly home: string;
  readonly project: string;
  readonly policies: CompileInput;
  readonly book: GrantBook;
  now = { wall: 1_000_000, monotonic: 0 };
  noteFails = false;
  widenFails: { errno: number; message: string } | undefined;

  constructor(policies: { user?: object; team?: object; project?: object } = {}, parts: Partial<BookParts> = {}) {
    this.home = realpathSync(mkdtempSync(join(tmpdir(), 'nd7-grants-')));
    made.push(this.home);
    this.project = join(this.home, 'p');
    for (const folder of ['p', '.nd7', 'out', '.ssh']) mkdirSync(join(this.home, folder));
    const policy = (name: string, document: object | undefined) =>
      document === undefined ? null : readPolicy(JSON.stringify({ nd7: 1, ...document }), `/${name}`, name);
    const project = policy('project', policies.project);
    this.policies = {
      places: {
        home: this.home,
        project: this.project,
        tmp: '/private/tmp',
        nd7Home: join(this.home, '.nd7'),
        variables: {},
      },
      user: policy('user', policies.user),
      project: project && { policy: project, trusted: false },
      team: policy('team', policies.team),
      session: { profile: null, packs: [], policy: null },
      grants: [],
      files: new Map(),
    };
    this.book = new GrantBook({
      policies: this.policies,
      ruleset: compile(this.policies).ruleset,
      note: (kind, data, _what, source) => {
        if (this.noteFails) return Promise.reject(new Error('the disk is full'));
        this.log.push(`note ${kind} ${String(data['id'])}${kind === 'revoke' ? ` ${String(data['reason'])}` : ''}`);
        this.entries.push({ kind, data, source });
        return Promise.resolve();
      },
      recheck: () => {
        this.log.push('recheck');
        return 0;
      },
      seesCalls: true,
      facts: {},
      clocks: { wall: () => this.now.wall, monotonic: () => this.now.monotonic },
      ...parts,
    });
    this.book.attach({
      widen: ({ id, what, path, below }) => {
        if (this.widenFails !== undefined)
          return Promise.reject(Object.assign(new Error(this.widenFails.message), this.widenFails));
        this.log.push(`widen ${id} ${what} ${path.replace(this.home, '~')}${below ? ' below' : ''}`);
        return Promise.resolve();
      },
      narrow: (id) => {
        this.log.push(`narrow ${id}`);
        return Promise.resolve();
      },
    });
  }

  at(...names: string[]): string {
    return join(this.home, ...names);
  }
}
