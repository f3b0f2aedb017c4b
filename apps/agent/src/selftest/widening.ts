// What the attempts to widen a session aim at: the control socket of a session that is none, and a grant in the session itself that has ended.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { compile, type CompileInput } from '@nd7/policy';
import { GrantBook } from '../grants/book.js';
import { CONTROL, Control } from '../grants/control.js';
import { askSession, livingSessions } from '../grants/find.js';

/** What is asked for there, and granted to whoever may ask. */
export const ASKED = 'nd7-selftest.invalid';

/** A control socket as a living session has it, with rules of its own that nothing follows. */
export class OpenSession {
  private constructor(
    /** What is nd7's home for who looks for sessions. */
    readonly home: string,
    /** The socket. */
    readonly path: string,
    private readonly book: GrantBook,
    private readonly control: Control,
  ) {}

  static async open(home: string, policies: CompileInput): Promise<OpenSession> {
    const folder = join(home, 'run', `c-${randomBytes(8).toString('hex')}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const book = new GrantBook({
      policies,
      ruleset: compile(policies).ruleset,
      note: () => Promise.resolve(),
      recheck: () => 0,
      seesCalls: false,
      facts: {},
    });
    const { project } = policies.places;
    const own = { session: 'nd7-selftest', project, cwd: project, command: ['nd7', 'selftest'], agent: null };
    const living = { ...own, started: new Date().toISOString(), pid: process.pid };
    const control = await Control.open({ folder, book, living, refused: () => Promise.resolve() });
    return new OpenSession(home, join(folder, CONTROL), book, control);
  }

  /** Whether a host was granted, which only who is outside may do. */
  has(host: string): boolean {
    return this.book.grants.some(({ wanted }) => wanted.what === `${host}:443`);
  }

  async close(): Promise<void> {
    this.book.close();
    await this.control.close();
  }
}

/** Lets the session that this process is the front of write to a folder, and takes that back; then `mark` says so inside, or why that could not be done. */
export async function grantAndRevoke(nd7Home: string, folder: string, mark: string): Promise<void> {
  let said = 'over';
  try {
    const own = (await livingSessions(nd7Home)).find(({ pid }) => pid === process.pid);
    if (own === undefined) throw new Error('the session has no control socket');
    const wanted = [{ right: 'write', what: folder, below: true, raw: false }];
    const made = await askSession<{ grants: { id: string }[] }>(own, 'allow', { wanted, for: 'session', yes: true });
    await askSession(own, 'revoke', { ids: made.grants.map(({ id }) => id) });
  } catch (error) {
    said = error instanceof Error ? error.message : String(error);
  }
  mkdirSync(dirname(mark), { recursive: true });
  writeFileSync(mark, said);
}
