// A recorded session with real keys and seals, and a machine that ships it as the agent does. For tests only.
import { blake3Hex } from '@nd7/blake3';
import { certMessage, genesis, sealMessage } from '@nd7/chain';
import { formatTime, printEntry, toHex, utf8, type EntryDraft } from '@nd7/entry';
import {
  claimMessage,
  closeMessage,
  encodeClaimHeaders,
  enrolMessage,
  openMessage,
  signRequest,
  type Claim,
  type SignedClaim,
  declareContentSize,
} from '@nd7/segment';
import { generateKeyPair, sha256Hex, systemRandom } from '@nd7/signing';
import { compress } from '../ingest/frame.js';

type KeyPair = ReturnType<typeof generateKeyPair>;
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export interface Cut {
  from: number;
  to: number;
  prev: string;
  head: string;
  bytes: Uint8Array;
}

/** Grows a log in memory; `lines` may be spoiled on purpose. */
export class TestSession {
  readonly lines: Uint8Array[] = [];
  readonly heads: string[];
  readonly firstKey: string;
  /** The session key in force after each count. */
  private readonly keys: KeyPair[];

  constructor(
    readonly machine: KeyPair,
    readonly id: string,
    private time = Date.parse('2026-11-29T19:41:00.000Z'),
  ) {
    this.heads = [genesis(id)];
    this.keys = [generateKeyPair()];
    this.firstKey = this.key.publicKey;
  }

  private get key(): KeyPair {
    return this.keys.at(-1) as KeyPair;
  }

  get count(): number {
    return this.lines.length;
  }

  /** Entry 0; `data` overrides its members (undefined leaves one out). */
  start(data: Record<string, unknown> = {}): this {
    const cert = toHex(this.machine.sign(certMessage(this.id, this.key.publicKey)));
    const all = { machine: this.machine.publicKey, key: this.key.publicKey, cert, agent: 'claude-code', ...data };
    return this.add({ source: 'recorder:nd7', kind: 'session.start', data: JSON.stringify(all) });
  }

  add(draft: Partial<EntryDraft> = {}): this {
    this.time += 10;
    const whole = {
      time: formatTime(this.time),
      source: 'intent:claude-code',
      kind: 'tool.before',
      data: `{"tool_name":"Bash","tool_input":{"command":"echo ${String(this.count)}"}}`,
      ...draft,
    };
    return this.raw(printEntry(this.count, this.heads.at(-1) as string, whole));
  }

  /** Any bytes as the next line. */
  raw(line: Uint8Array): this {
    this.lines.push(line);
    this.heads.push(blake3Hex(line));
    this.keys.push(this.key);
    return this;
  }

  /** Puts another line in the place of the one just taken away; the key in force stays. */
  respell(line: Uint8Array): this {
    this.lines.push(line);
    this.heads.push(blake3Hex(line));
    return this;
  }

  seal(): this {
    const next = generateKeyPair();
    const sig = toHex(this.key.sign(sealMessage(this.id, this.count, this.heads.at(-1) as string, next.publicKey)));
    this.add({ source: 'recorder:nd7', kind: 'seal', data: JSON.stringify({ next: next.publicKey, sig }) });
    this.keys[this.count] = next;
    return this;
  }

  /** `n` entries and a seal. */
  more(n: number, draft: Partial<EntryDraft> = {}): this {
    for (let i = 0; i < n; i += 1) this.add(draft);
    return this.seal();
  }

  /** The session in a heartbeat. */
  named(entries = this.count): { session: string; entries: number; head: string } {
    return { session: this.id, entries, head: this.heads[entries] ?? 'f'.repeat(64) };
  }

  cut(from: number, to = this.count): Cut {
    const bytes = Buffer.concat(this.lines.slice(from, to).flatMap((line) => [line, utf8('\n')]));
    return { from, to, prev: this.heads[from] as string, head: this.heads[to] as string, bytes };
  }

  /** The same session up to `count` entries, to go on differently: what somebody does who owns the machine. */
  branch(count: number): TestSession {
    const other = new TestSession(this.machine, this.id, this.time + 500);
    other.lines.push(...this.lines.slice(0, count));
    other.heads.splice(0, 1, ...this.heads.slice(0, count + 1));
    other.keys.splice(0, 1, ...this.keys.slice(0, count + 1));
    return Object.assign(other, { firstKey: this.firstKey });
  }
}

export interface Answer {
  status: number;
  text: string;
  headers: Headers;
  json: Record<string, unknown>;
}

/** An enrolled machine: signs its claims and requests. */
export class TestMachine {
  token = '';
  /** How far its clock is ahead of this process's, in milliseconds. */
  ahead = 0;
  constructor(
    public url: string,
    readonly origin: string,
    readonly key: KeyPair = generateKeyPair(),
  ) {}

  async enrol(token: string, name = 'box'): Promise<Answer> {
    const secret = token.split('_').slice(1, -1).join('_');
    const nameHash = sha256Hex(Buffer.from(`nd7/name/v1\n${secret}\n${name}\n`));
    const signature = base64(
      this.key.sign(enrolMessage({ origin: this.origin, machine: this.key.publicKey, nameHash })),
    );
    const body = JSON.stringify({ secret, machine: this.key.publicKey, name, name_hash: nameHash, signature });
    const answer = await this.fetch('POST', '/v1/enrol', { body: Buffer.from(body) });
    if (answer.status === 201) this.token = String(answer.json['token']);
    return answer;
  }

  claim(session: string, cut: Omit<Cut, 'bytes'>, over: Partial<Claim> = {}): SignedClaim {
    const { from, to, prev, head } = cut;
    const claim: Claim = { origin: this.origin, machine: this.key.publicKey, session, from, to, prev, head, ...over };
    return { ...claim, signature: base64(this.key.sign(claimMessage(claim))) };
  }

  /** Ships a cut. `body` and `headers` replace what would be sent. */
  async ship(
    session: string,
    cut: Cut,
    over: {
      claim?: SignedClaim;
      body?: Uint8Array;
      headers?: Record<string, string>;
      plain?: boolean;
      path?: string;
    } = {},
  ): Promise<Answer> {
    const claim = over.claim ?? this.claim(session, cut);
    const plain = over.plain === true;
    const body =
      over.body ??
      (plain ? cut.bytes : (declareContentSize(await compress(Buffer.from(cut.bytes)), cut.bytes.length) ?? cut.bytes));
    return this.signed('PUT', over.path ?? `/v1/sessions/${session}/segments/${String(cut.from)}`, body, {
      'content-type': 'application/x-ndjson',
      ...(plain ? {} : { 'content-encoding': 'zstd' }),
      ...encodeClaimHeaders(claim),
      ...over.headers,
    });
  }

  open(session: string, entries: number, head: string, key: string): Promise<Answer> {
    const signature = base64(
      this.key.sign(openMessage({ origin: this.origin, machine: this.key.publicKey, session, entries, head, key })),
    );
    return this.signed(
      'POST',
      `/v1/sessions/${session}/open`,
      Buffer.from(JSON.stringify({ entries, head, key, signature })),
    );
  }

  close(session: string, entries: number, head: string, reason: 'ended' | 'continued' = 'ended'): Promise<Answer> {
    const signature = base64(
      this.key.sign(closeMessage({ origin: this.origin, machine: this.key.publicKey, session, entries, head, reason })),
    );
    return this.signed(
      'POST',
      `/v1/sessions/${session}/close`,
      Buffer.from(JSON.stringify({ entries, head, reason, signature })),
    );
  }

  /** Says that it is there, as a recorder does every minute. */
  beat(said: object = {}): Promise<Answer> {
    const whole = { time: formatTime(Date.now() + this.ahead), interval: 60, sessions: [], ...said };
    return this.signed('POST', '/v1/heartbeat', Buffer.from(JSON.stringify(whole)));
  }

  /** The headers of a signed request. */
  async headers(
    method: string,
    path: string,
    body: Uint8Array,
    over: { now?: number; nonce?: Uint8Array; token?: string; key?: KeyPair } = {},
  ): Promise<Record<string, string>> {
    const { now = Date.now() + this.ahead, nonce = systemRandom(16), token = this.token, key = this.key } = over;
    const signed = await signRequest({ method, pathWithQuery: path, bodySha256Hex: sha256Hex(body), now, nonce }, key);
    return { authorization: `Bearer ${token}`, ...signed };
  }

  async signed(
    method: string,
    path: string,
    body: Uint8Array = new Uint8Array(0),
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.fetch(method, path, { body, headers: { ...(await this.headers(method, path, body)), ...headers } });
  }

  async fetch(
    method: string,
    path: string,
    given: { body?: Uint8Array; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    return call(this.url, method, path, given);
  }
}

/** One request; the body is read whole. */
export async function call(
  url: string,
  method: string,
  path: string,
  given: { body?: Uint8Array; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const body = given.body === undefined || given.body.length === 0 ? {} : { body: Buffer.from(given.body) };
  const response = await fetch(`${url}${path}`, { method, headers: given.headers ?? {}, redirect: 'manual', ...body });
  const text = await response.text();
  let json: Record<string, unknown> = {};
  try {
    json = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // not every answer is JSON
  }
  return { status: response.status, text, headers: response.headers, json };
}
