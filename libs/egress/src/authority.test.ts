import { describe, expect, it } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { connect as tlsConnect, TLSSocket } from 'node:tls';
import { SessionAuthority } from './authority.js';

/** A TLS server that believes to be `host`, by a context of the authority's. */
async function serverFor(authority: SessionAuthority, host: string): Promise<Server> {
  const server = createServer((socket) => {
    const secure = new TLSSocket(socket, { isServer: true, secureContext: authority.contextFor(host) });
    secure.on('error', () => undefined).end('hello');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** What a client that trusts `ca` alone says to it: the error's code, or undefined. */
async function meet(server: Server, ca: string, servername: string): Promise<string | undefined> {
  const secure = tlsConnect({ socket: connect((server.address() as AddressInfo).port, '127.0.0.1'), ca, servername });
  const met = new Promise<string | undefined>((done) => {
    secure.on('error', (error: NodeJS.ErrnoException) => done(error.code)).on('secureConnect', () => done(undefined));
  });
  const code = await met;
  secure.destroy();
  return code;
}

describe('the authority of a session', () => {
  it('is trusted for its hosts', async () => {
    const authority = new SessionAuthority(['api.example.com', 'xn--nxasmq6b.example']);
    for (const host of ['api.example.com', 'xn--nxasmq6b.example']) {
      const server = await serverFor(authority, host);
      expect([host, await meet(server, authority.certificate, host)]).toEqual([host, undefined]);
      expect(await meet(server, authority.certificate, 'other.example.com')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
      expect(await meet(server, new SessionAuthority([host]).certificate, host)).toMatch(
        /UNABLE_TO_VERIFY|SELF_SIGNED|SIGNATURE/,
      );
      server.close();
    }
  });

  it('speaks for no other host', () => {
    const authority = new SessionAuthority(['api.example.com']);
    for (const host of ['evil.example', 'example.com', 'a.api.example.com', 'API.example.com', ''])
      expect(() => authority.contextFor(host)).toThrow(RangeError);
  });

  it('has certificates that another implementation takes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'nd7-authority-'));
    const authority = new SessionAuthority(['api.example.com']);
    const server = await serverFor(authority, 'api.example.com');
    const secure = tlsConnect({
      socket: connect((server.address() as AddressInfo).port, '127.0.0.1'),
      ca: authority.certificate,
      servername: 'api.example.com',
    });
    await once(secure, 'secureConnect');
    const leaf = secure.getPeerX509Certificate() as X509Certificate;
    secure.destroy();
    server.close();
    const ca = new X509Certificate(authority.certificate);
    expect([leaf.checkIssued(ca), leaf.verify(ca.publicKey), ca.verify(ca.publicKey), leaf.ca, ca.ca]).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
    expect(leaf.subjectAltName).toBe('DNS:api.example.com');
    const [caFile, leafFile] = ['ca.pem', 'leaf.pem'].map((name) => join(folder, name)) as [string, string];
    writeFileSync(caFile, authority.certificate);
    writeFileSync(leafFile, leaf.toString());
    if (spawnSync('openssl', ['version']).status === 0) {
      const strict = [
        'verify',
        '-x509_strict',
        '-purpose',
        'sslserver',
        '-verify_hostname',
        'api.example.com',
        '-CAfile',
        caFile,
        leafFile,
      ];
      expect(execFileSync('openssl', strict, { encoding: 'utf8' })).toContain('OK');
      const told = execFileSync('openssl', ['x509', '-in', caFile, '-noout', '-text'], { encoding: 'utf8' });
      expect(told).toMatch(
        /Name Constraints: critical\s+Permitted:\s+DNS:api\.example\.com\s+Excluded:\s+IP:0\.0\.0\.0\/0\.0\.0\.0/,
      );
    }
    rmSync(folder, { recursive: true });
  });
});
