import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { genesis } from '@nd7/chain';
import { fromHex, utf8 } from '@nd7/entry';
import {
  enrolMessage,
  parseRequestHeaders,
  REQUEST_WINDOW,
  requestMessage,
  signedItem,
  type SignedClaim,
} from '@nd7/segment';
import { generateKeyPair, sha256Hex, systemRandom, verifySignatures } from '@nd7/signing';
import { formatNote, keyId, parseNote, signatureLine, signNote } from '@nd7/tlog';
import { EnrolRequest, HeartbeatRequest, problemDocument, type ProblemCode } from '@nd7/vault-api';
import { IngestDouble, Refusal } from './ingest-double.js';
import { LogDouble } from './log-double.js';

/** What can be made to go wrong; a number is how many times. */
export interface VaultFaults {
  /** Receipts are signed by a key that was never pinned, under the pinned name. */
  wrongKey?: boolean;
  /** The pinned key's line is there and does not verify. */
  badSignature?: boolean;
  /** The proof does not lead to the signed root. */
  wrongInclusion?: boolean;
  /** Answers with the receipt of this leaf of the log, whatever was asked for. */
  otherReceipt?: number;
  /** Answers that are no receipt at all. */
  garbage?: boolean;
  /** Takes the request, and the connection dies before the answer. */
  loseAnswer?: number;
  /** Answers 503, with so many seconds to wait where `retryAfter` is set. */
  busy?: number;
  retryAfter?: number;
  /** Takes heartbeats and never answers them. */
  hang?: boolean;
  /** Publishes nothing until it is false again: 202, and no receipt at the Location. */
  hold?: boolean;
  /** Where a 202 points. */
  location?: string;
  /** Refuses every segment with this code. */
  refuse?: ProblemCode;
  /** Shows another offer at enrolment than the one the token was made for. */
  otherVkey?: string;
}

/**
 * A vault in memory behind a real HTTP server on loopback: real keys, real Merkle log, every request's signature and every entry verified, answers as docs/receipt.md
 * has them. `faults` make it lie or fail; `checkAll` verifies everything it holds and has published.
 */
export class VaultDouble {
  readonly team = 'acme';
  readonly log = new LogDouble('vault.test/acme');
  readonly faults: VaultFaults = {};
  /** Every segment that was asked for, in order, with the status of the answer. */
  readonly puts: { session: string; from: number; to: number | undefined; status: number }[] = [];
  /** Every heartbeat that was taken, in order. */
  readonly heartbeats: HeartbeatRequest[] = [];
  readonly #ingest: IngestDouble;
  readonly #tokens = new Map<string, string>();
  readonly #secrets = new Set<string>();
  readonly #nonces = new Set<string>();
  readonly #liar = generateKeyPair();
  readonly #server: Server;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly now: () => number) {
    this.#ingest = new IngestDouble(this.log, now);
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(now: () => number = () => Date.now()): Promise<VaultDouble> {
    const vault = new VaultDouble(now);
    await new Promise<void>((resolve) => vault.#server.listen(0, '127.0.0.1', resolve));
    return vault;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  get vkey(): string {
    return this.log.vkey;
  }

  /** Every fork that was found, the stored claim first. */
  get forks(): readonly { count: number; claims: [SignedClaim, SignedClaim] }[] {
    return this.#ingest.forks;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A one-time enrolment token. */
  enrolmentToken(): string {
    const secret = Buffer.from(systemRandom(32)).toString('base64url');
    this.#secrets.add(sha256Hex(utf8(secret)));
    return `nd7e1_${secret}_${sha256Hex(utf8(this.vkey))}`;
  }

  /** Knows a machine without enrolment; gives its token. */
  addMachine(machine: string): string {
    const token = `nd7m1_${Buffer.from(systemRandom(32)).toString('base64url')}`;
    this.#tokens.set(token, machine);
    return token;
  }

  /** Entries held of a session. */
  entries(machine: string, session: string): number {
    return this.#ingest.find(machine, session)?.segments.at(-1)?.claim.to ?? 0;
  }

  /** The exact bytes held of a session. */
  bytes(machine: string, session: string): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#ingest.find(machine, session)?.segments.map(({ body }) => body) ?? []));
  }

  /** `open/<entries>`, `close/<entries>`. */
  statements(machine: string, session: string): string[] {
    return [...(this.#ingest.find(machine, session)?.statements.keys() ?? [])];
  }

  /** Goes back to when a session had so many segments, log and all: a restored backup. */
  restoreTo(machine: string, session: string, segments: number): void {
    this.#ingest.cutBack(machine, session, segments);
  }

  /** Verifies everything held: chains from entry 0, claims that follow one another, receipts under the key, checkpoints as one growing tree. */
  async checkAll(): Promise<void> {
    await this.log.check();
    await this.#ingest.check();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = new Uint8Array(Buffer.concat(chunks));
    // One at a time: what a database's transactions do for the real one.
    const done = this.#turn.then(() => this.#answer(request, body, response));
    this.#turn = done.catch(() => undefined);
    await done.catch((error: unknown) => {
      const refusal =
        error instanceof Refusal
          ? error
          : new Refusal('internal', error instanceof Error ? (error.stack ?? '') : String(error));
      const document = problemDocument(refusal.code, refusal.message, refusal.extra);
      const later =
        refusal.code === 'busy' && this.faults.retryAfter !== undefined
          ? { 'retry-after': String(this.faults.retryAfter) }
          : {};
      response
        .writeHead(document.status, { 'content-type': 'application/problem+json', ...later })
        .end(JSON.stringify(document));
    });
  }

  async #answer(request: IncomingMessage, body: Uint8Array, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const route = `${request.method ?? ''} ${pathname}`;
    const match = (pattern: RegExp): string[] | undefined => pattern.exec(route)?.slice(1);
    const json = (status: number, value: unknown): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const text = (): unknown => JSON.parse(new TextDecoder().decode(body));
    if (this.#take('busy')) throw new Refusal('busy', 'come back later');
    const offer = {
      vault: 'vault.test',
      team: this.team,
      origin: this.log.origin,
      vkey: this.faults.otherVkey ?? this.vkey,
      policy: 'quorum none\n',
    };
    const [hash] = match(/^GET \/v1\/enrolment\/([0-9a-f]{64})$/) ?? [];
    if (hash !== undefined) {
      if (!this.#secrets.has(hash)) throw new Refusal('not-found', 'no such enrolment');
      return json(200, offer);
    }
    if (route === 'POST /v1/enrol') return json(201, { ...offer, ...(await this.#enrol(text())) });

    const machine = await this.#authenticate(request, body);
    if (route === 'POST /v1/heartbeat') {
      if (this.faults.hang === true) return;
      this.heartbeats.push(HeartbeatRequest.parse(text()));
      return json(200, { time: this.#ingest.received() });
    }
    const [enrolled] = match(/^GET \/v1\/machines\/([0-9a-f]{64})\/receipt$/) ?? [];
    if (enrolled !== undefined) {
      const is = `nd7/enrol/v1\norigin ${this.log.origin}\nmachine ${enrolled}\n`;
      return this.#receipt(
        response,
        200,
        this.log.leaves.findIndex((leaf) => new TextDecoder().decode(leaf).startsWith(is)),
      );
    }
    const [, session = ''] = /\/sessions\/([^/]+)/.exec(pathname) ?? [];
    const stored = this.#ingest.find(machine, session);
    if (match(/^GET (\/v1\/sessions\/[^/]+)$/) !== undefined) {
      if (stored === undefined) throw new Refusal('not-found', 'no such session');
      const [entries, head] = [this.entries(machine, session), stored.segments.at(-1)?.claim.head ?? genesis(session)];
      const key = stored.segments.at(-1)?.key ?? null;
      return json(200, {
        session,
        entries,
        head,
        key,
        sealed_to: entries - 1,
        closed: stored.closed,
        forked: stored.forked,
        next: entries,
      });
    }
    const [of, name] = match(/^GET \/v1\/machines\/([0-9a-f]{64})\/sessions\/[^/]+\/(.+)\/receipt$/) ?? [];
    if (of !== undefined && name !== undefined) {
      const leaf = name.startsWith('segments/')
        ? stored?.segments.find(({ claim }) => name === `segments/${String(claim.from)}`)?.leaf
        : stored?.statements.get(name);
      if (of !== machine || leaf === undefined) throw new Refusal('not-found', 'no such receipt');
      return this.#receipt(response, 200, leaf);
    }
    const base = `/v1/machines/${machine}/sessions/${session}`;
    const [kind] = match(/^POST \/v1\/sessions\/[^/]+\/(open|close)$/) ?? [];
    if (kind !== undefined) {
      const json = text() as { entries?: number };
      const { isNew, leaf } = await this.#ingest.state(kind, machine, session, json);
      return this.#receipt(response, isNew ? 201 : 200, leaf, `${base}/${kind}/${String(json.entries)}/receipt`);
    }
    const [from] = match(/^PUT \/v1\/sessions\/[^/]+\/segments\/(0|[1-9][0-9]*)$/) ?? [];
    if (from === undefined) throw new Refusal('not-found', 'there is nothing here');
    await this.#put(request, response, {
      machine,
      session,
      from: Number(from),
      body,
      location: `${base}/segments/${from}/receipt`,
    });
  }

  async #put(
    request: IncomingMessage,
    response: ServerResponse,
    put: { machine: string; session: string; from: number; body: Uint8Array; location: string },
  ): Promise<void> {
    const one = (name: string): string => (typeof request.headers[name] === 'string' ? request.headers[name] : '');
    const lines = Buffer.from(one('nd7-claim'), 'base64').toString();
    const asked = {
      session: put.session,
      from: put.from,
      to: Number(/^entries [0-9]+ ([0-9]+)$/m.exec(lines)?.[1]),
      status: 0,
    };
    this.puts.push(asked);
    response.on('close', () => (asked.status = response.statusCode));
    if (this.faults.refuse !== undefined) throw new Refusal(this.faults.refuse, 'refused', { next: put.from });
    const encoding = request.headers['content-encoding'];
    const { isNew, leaf } = await this.#ingest.put({
      ...put,
      claim: one('nd7-claim'),
      signature: one('nd7-signature'),
      encoding,
    });
    await this.#receipt(response, isNew ? 201 : 200, leaf, put.location);
  }

  async #enrol(json: unknown): Promise<Record<string, string>> {
    const { secret, machine, name, name_hash, signature } = EnrolRequest.parse(json);
    if (!this.#secrets.delete(sha256Hex(utf8(secret)))) throw new Refusal('bad-enrolment', 'used or unknown');
    const claim = { origin: this.log.origin, machine, nameHash: name_hash };
    const [good] = await verifySignatures([signedItem(machine, enrolMessage(claim), signature)]);
    if (good !== true || sha256Hex(utf8(`nd7/name/v1\n${secret}\n${name}\n`)) !== name_hash)
      throw new Refusal('bad-claim', 'the enrolment is not signed, or names another name');
    await this.log.append({ type: 'enrol', ...claim, signature, received: this.#ingest.received() });
    return { machine, token: this.addMachine(machine), receipt_location: `/v1/machines/${machine}/receipt` };
  }

  async #authenticate(request: IncomingMessage, body: Uint8Array): Promise<string> {
    const { headers } = request;
    const machine = this.#tokens.get(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '');
    if (machine === undefined) throw new Refusal('unauthorized', 'no such token');
    const one = (name: string): string | undefined => (typeof headers[name] === 'string' ? headers[name] : undefined);
    const signed = parseRequestHeaders({
      time: one('nd7-time'),
      nonce: one('nd7-nonce'),
      signature: one('nd7-request-signature'),
    });
    if (signed === undefined) throw new Refusal('bad-request-signature', 'the request is not signed');
    if (Math.abs(Date.parse(signed.time) - this.now()) > REQUEST_WINDOW)
      throw new Refusal('stale-request', 'the clocks differ');
    const message = requestMessage(request.method ?? '', request.url ?? '', sha256Hex(body), signed.time, signed.nonce);
    const [good] = await verifySignatures([
      { key: fromHex(machine) ?? new Uint8Array(0), message, signature: signed.signature },
    ]);
    if (good !== true) throw new Refusal('bad-request-signature', 'by another key');
    if (this.#nonces.has(signed.nonce)) throw new Refusal('replayed', 'this nonce was used');
    this.#nonces.add(signed.nonce);
    return machine;
  }

  /** Answers with a leaf's receipt, or says where it will be; as a liar where one is asked for. */
  async #receipt(response: ServerResponse, status: number, leaf: number, location?: string): Promise<void> {
    if (this.faults.hold !== true) await this.log.publish();
    const receipt = await this.log.receipt(this.faults.otherReceipt ?? leaf);
    if (location !== undefined && this.#take('loseAnswer')) return void response.destroy();
    if (receipt !== undefined)
      return void response
        .writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
        .end(await this.#told(receipt));
    if (location === undefined) throw new Refusal('not-published', 'not yet');
    response.writeHead(202, { location: this.faults.location ?? location }).end();
  }

  async #told(receipt: string): Promise<string> {
    const { wrongKey, badSignature, wrongInclusion, garbage } = this.faults;
    if (garbage === true) return 'thank you for your entries\n';
    const cut = receipt.indexOf('\n\n') + 2;
    const [proof, note] = [receipt.slice(0, cut), receipt.slice(cut)];
    const signed = parseNote(note)?.text ?? '';
    if (wrongKey === true) return proof + (await signNote(signed, this.log.origin, this.#liar));
    if (badSignature === true) {
      const id = keyId(this.log.origin, 1, fromHex(this.log.key.publicKey) ?? new Uint8Array(0));
      return proof + formatNote(signed, [signatureLine(this.log.origin, id, this.#liar.sign(utf8(signed)))]);
    }
    return wrongInclusion === true
      ? receipt.replace(/^index [0-9]+$/m, (line) => `index ${String(Number(line.slice(6)) + 1)}`)
      : receipt;
  }

  #take(fault: 'busy' | 'loseAnswer'): boolean {
    const left = this.faults[fault] ?? 0;
    if (left > 0) this.faults[fault] = left - 1;
    return left > 0;
  }
}
