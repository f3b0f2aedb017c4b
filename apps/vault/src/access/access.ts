import { Inject, Injectable } from '@nestjs/common';
import { fromHex } from '@nd7/entry';
import { parseRequestHeaders, REQUEST_WINDOW, requestMessage } from '@nd7/segment';
import { sha256Hex, verifySignatures } from '@nd7/signing';
import type { Route } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';
import { bodyBytes } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { MachineIdentity, ReaderIdentity } from '../http/request.js';
import { CLOCK, type Clock } from '../ports.js';
import { AccessStore } from './access.store.js';
import { bearerToken, cookieSecret, tokenHash } from './tokens.js';

/** Tokens never change what they name: what was found once is kept, oldest forgotten first. */
const KEPT = 10_000;

/** Who calls: tokens before the body is read, a machine's signature over the request after it. */
@Injectable()
export class Access {
  /** Token hash → machine; written by identifyMachine only. */
  private readonly machines = new Map<string, MachineIdentity>();

  constructor(
    private readonly store: AccessStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Finds out who calls, as far as the route asks for somebody. Throws a Problem (401, 404); runs before the body is read. */
  async identify(request: FastifyRequest, route: Route): Promise<void> {
    if (route.who === 'anyone') return;
    const bearer = bearerToken(request.headers.authorization);
    if (route.who === 'machine' || (route.who === 'either' && bearer?.kind === 'machine')) {
      request.machine = await this.identifyMachine(bearer);
      return;
    }
    const reader = await this.findReader(request);
    if (route.path.startsWith('/t/')) return this.admitToLog(request, reader);
    if (reader === undefined)
      throw new Problem(
        'unauthorized',
        'this route asks for a reader: sign in, or send a reader token (nd7r1_…) as bearer',
        {},
        { 'www-authenticate': 'Bearer' },
      );
    request.reader = reader;
  }

  /** The reader of a bearer token or, where there is none, of the cookie. */
  async findReader(request: FastifyRequest): Promise<ReaderIdentity | undefined> {
    const bearer = bearerToken(request.headers.authorization);
    if (request.headers.authorization !== undefined)
      return bearer?.kind === 'reader' ? this.store.readerOfToken(tokenHash(bearer.token)) : undefined;
    const cookie = cookieSecret(request.headers.cookie);
    return cookie === undefined ? undefined : this.store.readerOfCookie(tokenHash(cookie));
  }

  /** A team's log: its readers, or everybody where it is public. Of another team's log nobody learns that it exists. */
  private async admitToLog(request: FastifyRequest, reader: ReaderIdentity | undefined): Promise<void> {
    const { team } = request.params as { team?: string };
    if (reader !== undefined && reader.team === team) request.reader = reader;
    else if (!(await this.store.isPublicLog(team ?? ''))) {
      if (reader === undefined)
        throw new Problem(
          'unauthorized',
          'this log is not public: send a reader token (nd7r1_…) as bearer',
          {},
          { 'www-authenticate': 'Bearer' },
        );
      throw new Problem('not-found', 'there is no such log');
    }
  }

  private async identifyMachine(bearer: ReturnType<typeof bearerToken>): Promise<MachineIdentity> {
    if (bearer?.kind !== 'machine')
      throw new Problem(
        'unauthorized',
        'this route asks for a machine token (nd7m1_…) as bearer',
        {},
        { 'www-authenticate': 'Bearer' },
      );
    const hash = tokenHash(bearer.token);
    const kept = this.machines.get(hash);
    if (kept !== undefined) return kept;
    const found = await this.store.machineOfToken(hash);
    if (found === undefined)
      throw new Problem(
        'unauthorized',
        'this vault does not know the machine token: enrol the machine again',
        {},
        { 'www-authenticate': 'Bearer' },
      );
    const [oldest] = this.machines.keys();
    if (this.machines.size >= KEPT && oldest !== undefined) this.machines.delete(oldest);
    this.machines.set(hash, found);
    return found;
  }

  /** Checks the signature over the whole request, its time and its nonce, and that the machine is not revoked. Throws a Problem (401, 403). */
  async authenticate(request: FastifyRequest, machine: MachineIdentity): Promise<void> {
    const { headers } = request;
    const signed = parseRequestHeaders({
      time: one(headers['nd7-time']),
      nonce: one(headers['nd7-nonce']),
      signature: one(headers['nd7-request-signature']),
    });
    if (signed === undefined)
      throw new Problem(
        'bad-request-signature',
        'a machine’s request carries nd7-time, nd7-nonce and nd7-request-signature',
      );
    const now = this.clock.now();
    const isStale = Math.abs(Date.parse(signed.time) - now) > REQUEST_WINDOW;
    const good = await isSigned(request, machine, signed);
    if (isStale) {
      // Under a good signature it is the machine's clock, or somebody who held the request back: both are to be looked at.
      if (good) await this.store.clockDisagrees(machine, signed.time, now);
      throw new Problem(
        'stale-request',
        `the request is of ${signed.time}, it is ${new Date(now).toISOString()} here: set the machine’s clock`,
      );
    }
    if (!good)
      throw new Problem(
        'bad-request-signature',
        'the signature over the request is not by the machine key of this token',
      );
    const { fresh, revoked } = await this.store.useNonce(machine, signed.nonce, new Date(now));
    if (!fresh) throw new Problem('replayed', 'this nonce was used before: sign each request anew');
    if (revoked) throw new Problem('revoked', 'this machine was revoked; it can be enrolled again under a new key');
  }
}

async function isSigned(
  request: FastifyRequest,
  machine: MachineIdentity,
  { time, nonce, signature }: { time: string; nonce: string; signature: Uint8Array },
): Promise<boolean> {
  const key = fromHex(machine.machine);
  if (key === undefined) return false;
  const message = requestMessage(request.method, request.url, sha256Hex(bodyBytes(request)), time, nonce);
  return (await verifySignatures([{ key, message, signature }]))[0] === true;
}

function one(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
