import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import {
  bits,
  context,
  contextBytes,
  contextText,
  integer,
  octets,
  oid,
  sequence,
  set,
  time,
  utf8,
  yes,
} from './der.js';

/** RFC 5280, RFC 5758, SEC 1. */
const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const;

/** Bits of keyUsage, the first one the highest: digitalSignature; keyCertSign and cRLSign. */
const [SIGNS, ISSUES] = [bits(Buffer.of(0x80), 7), bits(Buffer.of(0x06), 1)];
const DAY_MS = 86_400_000;
/** A session that lives longer than any certificate may has to start anew. */
const VALID_DAYS = 397;

/**
 * The certificate authority of one session: made at its start, its key in this process's memory alone. It can speak for the hosts that it
 * was made for and for no others, and says so itself (name constraints), so that programs inside which trust it trust it for nothing else.
 */
export class SessionAuthority {
  /** Its certificate, which programs inside are to trust (PEM). */
  readonly certificate: string;
  readonly #name: Buffer;
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #identifier: Buffer;
  readonly #contexts = new Map<string, SecureContext>();
  readonly #hosts: ReadonlySet<string>;
  readonly #from = new Date(Date.now() - DAY_MS);

  /** `hosts` in the form of `parseHost`. */
  constructor(hosts: readonly string[]) {
    this.#hosts = new Set(hosts);
    this.#name = nameOf(`nd7 session ${randomBytes(6).toString('hex')}`);
    this.#identifier = identifierOf(this.#keys.publicKey);
    const names = [...this.#hosts].map((host) => sequence(contextText(2, host)));
    // No address is spoken for either: all of them are shut out.
    const addresses = [8, 32].map((length) => sequence(contextBytes(7, Buffer.alloc(length))));
    const constraints = sequence(context(0, ...names), context(1, ...addresses));
    this.certificate = this.#issue(this.#name, this.#keys.publicKey, [
      extension(OID.basicConstraints, sequence(yes, integer(Buffer.of(0))), true),
      extension(OID.keyUsage, ISSUES, true),
      extension(OID.nameConstraints, constraints, true),
      extension(OID.subjectKeyIdentifier, octets(this.#identifier)),
    ]);
  }

  /** What a server for one of the hosts proves itself with. Throws RangeError for any other. */
  contextFor(host: string): SecureContext {
    if (!this.#hosts.has(host)) throw new RangeError(`the session's authority does not speak for ${host}`);
    const known = this.#contexts.get(host) ?? this.#makeContext(host);
    this.#contexts.set(host, known);
    return known;
  }

  #makeContext(host: string): SecureContext {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = this.#issue(nameOf(host.length <= 64 ? host : 'host'), publicKey, [
      extension(OID.basicConstraints, sequence(), true),
      extension(OID.keyUsage, SIGNS, true),
      extension(OID.extKeyUsage, sequence(oid(OID.serverAuth))),
      extension(OID.subjectAltName, sequence(contextText(2, host))),
      extension(OID.authorityKeyIdentifier, sequence(contextBytes(0, this.#identifier))),
      extension(OID.subjectKeyIdentifier, octets(identifierOf(publicKey))),
    ]);
    return createSecureContext({ cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) });
  }

  #issue(subject: Buffer, key: KeyObject, extensions: Buffer[]): string {
    const algorithm = sequence(oid(OID.ecdsaWithSha256));
    const serial = randomBytes(16);
    serial[0] = 0x40 | ((serial[0] as number) & 0x3f);
    const body = sequence(
      context(0, integer(Buffer.of(2))), // version 3
      integer(serial),
      algorithm,
      this.#name,
      sequence(time(this.#from), time(new Date(this.#from.getTime() + VALID_DAYS * DAY_MS))),
      subject,
      publicBytes(key),
      context(3, sequence(...extensions)),
    );
    const whole = sequence(body, algorithm, bits(sign('sha256', body, this.#keys.privateKey)));
    const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
  }
}

function nameOf(text: string): Buffer {
  return sequence(set(sequence(oid(OID.commonName), utf8(text))));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [yes] : []), octets(value));
}

function publicBytes(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

/** Any value that is one key's alone will do (RFC 5280 section 4.2.1.2). */
function identifierOf(key: KeyObject): Buffer {
  return createHash('sha256').update(publicBytes(key)).digest().subarray(0, 20);
}
