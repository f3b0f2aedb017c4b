import { Body, Controller, HttpCode, Inject, Req, Res } from '@nestjs/common';
import { SignInRequest, type Me } from '@nd7/vault-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { VaultConfig } from '../config.js';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { Problem } from '../http/problem.js';
import type { ReaderIdentity } from '../http/request.js';
import { TeamLog } from '../log/team-log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { AccessStore } from './access.store.js';
import { COOKIE, cookieSecret, newSecret, tokenHash } from './tokens.js';

const HOURS_SIGNED_IN = 12;

/** Turns a reader's token into a cookie of its own, so that the token lies in no browser. */
@Controller()
export class SignInController {
  constructor(
    private readonly config: VaultConfig,
    private readonly store: AccessStore,
    private readonly log: TeamLog,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  @Api('me')
  me(@Req() request: FastifyRequest): Promise<Me> {
    return this.meOf(request.reader as ReaderIdentity);
  }

  @Api('signIn')
  @HttpCode(200)
  async signIn(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Body(new Valid(SignInRequest)) body: SignInRequest,
  ): Promise<Me> {
    this.sameOrigin(request);
    const reader = await this.store.readerOfToken(tokenHash(body.token.trim()));
    if (reader === undefined)
      throw new Problem('unauthorized', 'this vault does not know the reader token, or it has expired');
    const secret = newSecret(this.random);
    await this.store.signIn(reader, tokenHash(secret), new Date(this.clock.now() + HOURS_SIGNED_IN * 3_600_000));
    this.setCookie(reply, secret, HOURS_SIGNED_IN * 3600);
    return this.meOf(reader);
  }

  @Api('signOut')
  @HttpCode(204)
  async signOut(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<void> {
    this.sameOrigin(request);
    const secret = cookieSecret(request.headers.cookie);
    const reader = secret === undefined ? undefined : await this.store.readerOfCookie(tokenHash(secret));
    if (secret !== undefined && reader !== undefined) await this.store.signOut(reader, tokenHash(secret));
    this.setCookie(reply, '', 0);
  }

  private async meOf(reader: ReaderIdentity): Promise<Me> {
    return {
      team: reader.team,
      reader: reader.reader,
      origin: this.log.origin(reader.team),
      vkey: await this.log.vkey(reader.team),
    };
  }

  private setCookie(reply: FastifyReply, value: string, seconds: number): void {
    const secure = this.config.publicUrl?.startsWith('https:') === true ? '; Secure' : '';
    reply.header(
      'set-cookie',
      `${COOKIE}=${value}; Path=/; Max-Age=${String(seconds)}; HttpOnly; SameSite=Strict${secure}`,
    );
  }

  /** A browser says which page a POST comes from; another site’s page must not sign anybody in or out. */
  private sameOrigin(request: FastifyRequest): void {
    const { origin, host } = request.headers;
    if (origin === undefined) return;
    const own = this.config.publicUrl === undefined ? undefined : new URL(this.config.publicUrl).origin;
    if (origin === own || (host !== undefined && (origin === `http://${host}` || origin === `https://${host}`))) return;
    throw new Problem('wrong-origin', 'signing in and out is for the vault’s own pages');
  }
}
