// The control socket of a living session, by which a person widens and narrows it from another terminal (docs/protocol/control-socket.md).
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { processFacts, type Peer } from '@nd7/kernel';
import { CliError } from '../cli/io.js';
import type { Answer, Request as Frame } from '../recorder/frames.js';
import { listen, type HookServer } from '../recorder/server.js';
import { authorOf, FIRST, type Author } from './author.js';
import type { Done, GrantBook } from './book.js';
import { denialRow, grantRow, requestRow } from './entry.js';
import { FrameFault, readAllow, readDeny, readRevoke } from './control-frames.js';
import { asCliError } from './ruling.js';

/** Longer than any question. */
export const CONTROL_LIMIT = 256 << 10;
export const CONTROL = 'control';
/** So many refusals are told one by one. */
const MAX_TOLD = 20;

/** What a living session says of itself. */
export interface Living {
  session: string;
  project: string;
  cwd: string;
  command: readonly string[];
  agent: string | null;
  started: string;
  pid: number;
}

export interface ControlParts {
  /** The folder that is made with the door and never shown inside. */
  folder: string;
  book: GrantBook;
  living: Living;
  /** Writes that somebody was refused. */
  refused(by: Peer, detail: string): Promise<void>;
}

export class Control {
  #server: HookServer | undefined;
  #refused = 0;

  private constructor(private readonly parts: ControlParts) {}

  static async open(parts: ControlParts): Promise<Control> {
    const control = new Control(parts);
    control.#server = await listen({ folder: parts.folder, name: CONTROL, limit: CONTROL_LIMIT }, (frame, peer) =>
      control.answer(frame, peer),
    );
    return control;
  }

  /** Says which process is the session’s first, so that no session hears those below it. */
  admit(pid: number | undefined): void {
    const facts = pid === undefined ? undefined : processFacts(pid);
    if (facts !== undefined)
      writeFileSync(join(this.parts.folder, FIRST), `${facts.pid} ${facts.start}\n`, { mode: 0o600 });
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  /** Answers one question. Never rejects. */
  async answer({ op, payload }: Frame, peer: Peer): Promise<Answer> {
    try {
      const author = authorOf(peer, dirname(this.parts.folder));
      if ('refused' in author) {
        if (++this.#refused <= MAX_TOLD) await this.parts.refused(peer, author.refused);
        throw new CliError(1, author.refused, undefined, 'inside');
      }
      return json(0, await this.#do(op, payload, author));
    } catch (error) {
      if (error instanceof FrameFault) return failed(new CliError(2, error.message, undefined, 'bad-frame'));
      return failed(asCliError(error));
    }
  }

  async #do(op: string, payload: Buffer, by: Author): Promise<unknown> {
    const { book, living } = this.parts;
    switch (op) {
      case 'living':
        return living;
      case 'grants':
        return {
          session: living.session,
          project: living.project,
          grants: book.grants.map(grantRow),
          denials: book.denials.map(denialRow),
          requests: book.requests.map(requestRow),
        };
      case 'rules':
        return { session: living.session, ruleset: book.ruleset };
      case 'allow': {
        const { wanted, scope, yes, request } = readAllow(payload);
        const risks = book.risks(wanted, scope);
        if (risks.length > 0 && !yes) return { risks };
        return this.#done(await book.allow(wanted, scope, by, request), risks);
      }
      case 'deny': {
        const asked = readDeny(payload);
        if (!('request' in asked)) return this.#done(await book.deny(asked.wanted, by));
        const request = book.requests.find(({ id, state }) => id === asked.request && state === 'pending');
        if (request === undefined)
          throw new CliError(
            1,
            `no pending request is called ${asked.request}`,
            '`nd7 grants` lists them.',
            'no-request',
          );
        await book.refuse(request, by);
        return { ...this.#done({ grants: [], denials: [], closed: 0 }), requests: [requestRow(request)] };
      }
      case 'revoke':
        return this.#done(await book.revoke(readRevoke(payload), by));
      default:
        throw new FrameFault(`nothing is called "${op.slice(0, 40)}" here`);
    }
  }

  #done({ grants, denials, closed }: Done, risks: readonly string[] = []): object {
    return {
      session: this.parts.living.session,
      grants: grants.map(grantRow),
      denials: denials.map(denialRow),
      closed,
      risks,
    };
  }
}

function json(exit: number, value: unknown): Answer {
  return { exit, stdout: `${JSON.stringify(value)}\n`, stderr: '' };
}

function failed(error: unknown): Answer {
  const known = error instanceof CliError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  const { code = 'failed', hint, exitCode = 1 } = known ?? {};
  return json(exitCode, { error: { code, message, ...(hint === undefined ? {} : { hint }) } });
}
