import type { Clock, Random } from '@nd7/entry';
import { utf8 } from '@nd7/entry';
import type { SignedClaim } from '@nd7/segment';
import { encodeClaimHeaders, signRequest } from '@nd7/segment';
import { sha256Hex } from '@nd7/signing';
import type { Signer } from '@nd7/tlog';
import {
  CloseRequest,
  Enrolment,
  EnrolAnswer,
  EnrolRequest,
  HeartbeatAnswer,
  HeartbeatRequest,
  OpenRequest,
  pathOf,
  SessionStatus,
  TeamPolicy,
} from '@nd7/vault-api';
import { VaultError, isVaultError } from './error.js';
import { send, type Answer } from './http.js';

/** A machine's credentials at one vault. */
export interface MachineAccess {
  /** Public key, 64 hex. */
  machine: string;
  /** `nd7m1_…`. */
  token: string;
  signer: Signer;
}

export interface VaultClientOptions {
  /** Base address, e.g. `https://vault.example`. */
  url: string;
  /** None while a machine enrols. */
  access?: MachineAccess;
  clock: Clock;
  random: Random;
  /** For one request, milliseconds. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** What a POST or PUT of a statement gave: a receipt (not yet verified), or where it will be. */
export type StatementAnswer = { receipt: string } | { location: string };

/**
 * The vault's routes as a machine calls them. Every request is signed anew (time, nonce); nothing is retried, no redirect followed, no answer longer than a
 * megabyte read. Throws VaultError. It believes nothing of what it is told: receipts are for the caller to verify.
 */
export class VaultClient {
  readonly url: string;

  constructor(private readonly options: VaultClientOptions) {
    this.url = options.url.replace(/\/+$/, '');
  }

  /** What a machine may know before it shows the secret. */
  async enrolment(secretHash: string): Promise<Enrolment> {
    return this.json(await this.plain('GET', pathOf('enrolment', { secret_hash: secretHash })), Enrolment);
  }

  async enrol(request: EnrolRequest): Promise<EnrolAnswer> {
    return this.json(await this.plain('POST', pathOf('enrol'), EnrolRequest.parse(request)), EnrolAnswer);
  }

  /** Ships one segment. `body` is what goes over the wire. */
  async putSegment(claim: SignedClaim, body: Uint8Array, encoding: 'zstd' | 'identity'): Promise<StatementAnswer> {
    const path = pathOf('segment', { session: claim.session, from: claim.from });
    const headers = {
      ...encodeClaimHeaders(claim),
      'content-type': 'application/x-ndjson',
      ...(encoding === 'zstd' && { 'content-encoding': 'zstd' }),
    };
    return this.statement(await this.signed('PUT', path, body, headers));
  }

  /** What the vault holds of a session; undefined where it knows none of this machine. */
  async sessionStatus(session: string): Promise<SessionStatus | undefined> {
    try {
      return this.json(await this.signed('GET', pathOf('sessionStatus', { session })), SessionStatus);
    } catch (error) {
      if (isVaultError(error) && error.code === 'not-found') return undefined;
      throw error;
    }
  }

  /** The receipt at a path that the vault gave; undefined while it is not published. */
  async receipt(location: string): Promise<string | undefined> {
    try {
      return (await this.signed('GET', this.pathAt(location))).text;
    } catch (error) {
      if (isVaultError(error) && (error.code === 'not-published' || error.code === 'not-found')) return undefined;
      throw error;
    }
  }

  /** Where the receipt of a segment is to be had. */
  receiptPath(machine: string, session: string, from: number): string {
    return pathOf('segmentReceipt', { machine, session, from });
  }

  async open(session: string, request: OpenRequest): Promise<StatementAnswer> {
    return this.statement(
      await this.signed('POST', pathOf('open', { session }), ...asJson(OpenRequest.parse(request))),
    );
  }

  async close(session: string, request: CloseRequest): Promise<StatementAnswer> {
    return this.statement(
      await this.signed('POST', pathOf('close', { session }), ...asJson(CloseRequest.parse(request))),
    );
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer> {
    return this.json(
      await this.signed('POST', pathOf('heartbeat'), ...asJson(HeartbeatRequest.parse(request))),
      HeartbeatAnswer,
    );
  }

  /** The team's policy, not yet verified; undefined where the team has none. */
  async teamPolicy(): Promise<TeamPolicy | undefined> {
    try {
      return this.json(await this.signed('GET', pathOf('teamPolicy')), TeamPolicy);
    } catch (error) {
      if (isVaultError(error) && error.code === 'not-found') return undefined;
      throw error;
    }
  }

  private async signed(
    method: string,
    path: string,
    body?: Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const { access, clock, random } = this.options;
    if (access === undefined) throw new TypeError('this route needs a machine');
    const bodySha256Hex = sha256Hex(body ?? new Uint8Array(0));
    // The vault signs over the path as it sees it: with whatever prefix stands in the address.
    const pathWithQuery = new URL(this.url + path).pathname + new URL(this.url + path).search;
    const signature = await signRequest(
      { method, pathWithQuery, bodySha256Hex, now: clock.now(), nonce: random(16) },
      access.signer,
    );
    return this.request(method, path, body, { ...headers, ...signature, authorization: `Bearer ${access.token}` });
  }

  private plain(method: string, path: string, json?: unknown): Promise<Answer> {
    return json === undefined ? this.request(method, path) : this.request(method, path, ...asJson(json));
  }

  private request(
    method: string,
    path: string,
    body?: Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const { clock, timeoutMs = 30_000, signal } = this.options;
    return send({
      url: this.url + path,
      method,
      headers,
      timeoutMs,
      clock,
      ...(body && { body }),
      ...(signal && { signal }),
    });
  }

  private async statement(answer: Answer): Promise<StatementAnswer> {
    if (answer.status === 200 || answer.status === 201) return { receipt: answer.text };
    const location = answer.location;
    if (answer.status !== 202 || location === undefined)
      throw this.badAnswer(answer.status, 'neither a receipt nor where it will be');
    return { location: this.pathAt(location) };
  }

  /** A Location, as a path at this vault. Another host would be shown the machine's token. */
  private pathAt(location: string): string {
    const [base, target] = [
      new URL(this.url),
      URL.canParse(location, this.url) ? new URL(location, this.url) : undefined,
    ];
    if (target?.origin !== base.origin)
      throw this.badAnswer(0, `it points to another place: ${location.slice(0, 200)}`);
    const path = target.pathname + target.search;
    const prefix = base.pathname.replace(/\/+$/, '');
    return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path;
  }

  private async json<T>(
    answer: Answer,
    schema: { safeParse(value: unknown): { success: true; data: T } | { success: false } },
  ): Promise<T> {
    let value: unknown;
    try {
      value = JSON.parse(answer.text);
    } catch (error) {
      if (isVaultError(error)) throw error;
      throw this.badAnswer(answer.status, 'no JSON');
    }
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw this.badAnswer(answer.status, 'JSON of another form than this route has');
    return parsed.data;
  }

  private badAnswer(status: number, what: string): VaultError {
    return new VaultError('bad-answer', status, `the answer of ${this.url} is none of a vault: ${what}`);
  }
}

function asJson(value: unknown): [Uint8Array, Record<string, string>] {
  return [utf8(JSON.stringify(value)), { 'content-type': 'application/json' }];
}
