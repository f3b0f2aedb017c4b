import type { Socket } from 'node:net';
import { sayLast } from './answer.js';
import { Refusal, Unreachable } from './decision.js';
import type { Egress } from './proxy.js';
import { readHost, type Target } from './target.js';
import { nextBytes } from './tunnel.js';

/** Methods of RFC 1928 section 3, and reply codes of section 6. */
const [NO_AUTH, USER_PASSWORD, NO_METHOD] = [0, 2, 0xff];
const REPLY = { ok: 0, failed: 1, refused: 2, unreachable: 4, notAccepted: 5, command: 7, address: 8 } as const;
const CONNECT = 1;
const [IPV4, NAME, IPV6] = [1, 3, 4];

/** Speaks SOCKS 5 (RFC 1928, 1929) with one client: CONNECT by name or address, nothing else. */
export async function answerSocks(egress: Egress, client: Socket): Promise<void> {
  const bytes = new Bytes(client, Date.now() + egress.patienceMs);
  if (!(await greeted(egress, client, bytes))) return sayLast(client, new Uint8Array(), egress.patienceMs);
  const [, command, , kind] = await bytes.take(4);
  const said = await readAddress(bytes, kind as number);
  if (said === undefined) return sayLast(client, reply(REPLY.address), egress.patienceMs);
  const [high, low] = await bytes.take(2);
  bytes.giveBack();
  if (command !== CONNECT) {
    await egress.refused('socks5', { said }, new Refusal('bad-request', 'only CONNECT is spoken here'), client);
    return sayLast(client, reply(REPLY.command), egress.patienceMs);
  }
  try {
    const target = await targetOf(egress, client, said, ((high as number) << 8) | (low as number));
    await egress.tunnel('socks5', client, target, () => client.write(reply(REPLY.ok)));
  } catch (error) {
    sayLast(client, reply(codeOf(error)), egress.patienceMs);
  }
}

async function greeted(egress: Egress, client: Socket, bytes: Bytes): Promise<boolean> {
  const [, count] = await bytes.take(2);
  const offered = await bytes.take(count as number);
  const method = egress.token === undefined ? NO_AUTH : USER_PASSWORD;
  const spoken = offered.includes(method);
  client.write(Uint8Array.of(5, spoken ? method : NO_METHOD));
  if (!spoken || method === NO_AUTH) return spoken;
  const [version, userLength] = await bytes.take(2);
  const user = await bytes.take(userLength as number);
  const [passwordLength] = await bytes.take(1);
  const password = await bytes.take(passwordLength as number);
  const good = version === 1 && user.toString('latin1') === 'nd7' && egress.isAdmitted(password.toString('latin1'));
  client.write(Uint8Array.of(1, good ? 0 : 1));
  return good;
}

async function readAddress(bytes: Bytes, kind: number): Promise<string | undefined> {
  if (kind === IPV4) return (await bytes.take(4)).join('.');
  if (kind === IPV6) {
    const groups = await bytes.take(16);
    return Array.from({ length: 8 }, (_, i) => groups.readUInt16BE(2 * i).toString(16)).join(':');
  }
  if (kind !== NAME) return undefined;
  const [length] = await bytes.take(1);
  return (await bytes.take(length as number)).toString('latin1');
}

async function targetOf(egress: Egress, client: Socket, said: string, port: number): Promise<Target> {
  try {
    if (port === 0) throw new Refusal('bad-port', 'port 0 is no port');
    return readHost(said, port);
  } catch (error) {
    throw error instanceof Refusal ? await egress.refused('socks5', { said }, error, client) : error;
  }
}

function codeOf(error: unknown): number {
  if (error instanceof Refusal) return error.reason === 'no-address' ? REPLY.unreachable : REPLY.refused;
  if (error instanceof Unreachable) return error.code === 'refused' ? REPLY.notAccepted : REPLY.unreachable;
  return REPLY.failed;
}

function reply(code: number): Uint8Array {
  return Uint8Array.of(5, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}

/** The handshake's bytes, asked for by number; at most 513 of them are ever wanted at once. */
class Bytes {
  #held: Buffer = Buffer.alloc(0);

  constructor(
    private readonly socket: Socket,
    private readonly deadline: number,
  ) {}

  /** Exactly `n` bytes. Throws when they do not come. */
  async take(n: number): Promise<Buffer> {
    while (this.#held.length < n) {
      const more = await nextBytes(this.socket, this.deadline - Date.now());
      if (more === undefined) throw new Error('the handshake was not finished');
      this.#held = Buffer.concat([this.#held, more]);
    }
    const taken = this.#held.subarray(0, n);
    this.#held = this.#held.subarray(n);
    return taken;
  }

  /** What came beyond the handshake belongs to the tunnel. */
  giveBack(): void {
    if (this.#held.length > 0) this.socket.unshift(this.#held);
    this.#held = Buffer.alloc(0);
  }
}
