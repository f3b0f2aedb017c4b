import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { rule, TestNet, tlsEcho, tlsThrough } from './egress.fixture.js';

let net: TestNet;
beforeEach(async () => {
  net = await new TestNet().start();
});
afterEach(() => net.stop());

describe('SOCKS 5', () => {
  const named = (host: string, port: number, command = 1): Uint8Array =>
    Uint8Array.from([5, 1, 0, 5, command, 0, 3, host.length, ...Buffer.from(host, 'latin1'), port >> 8, port & 255]);

  it('opens a tunnel by name under the same rules', async () => {
    await net.host('api.example.com', 443, tlsEcho());
    net.rules.hosts.push(rule('api.example.com'));
    const socket = net.client();
    socket.write(named('api.example.com', 443));
    let heard = Buffer.alloc(0);
    while (heard.length < 12) heard = Buffer.concat([heard, (await once(socket, 'data'))[0] as Buffer]);
    expect([...heard]).toEqual([5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    const secure = await tlsThrough(socket, 'api.example.com');
    secure.write('x');
    expect(String((await once(secure, 'data'))[0])).toBe('x');
    secure.destroy();
    expect(net.decisions).toMatchObject([{ via: 'socks5', host: 'api.example.com', port: 443, verdict: 'allow' }]);
  });

  it.each<[string, Uint8Array, number[], string | null]>([
    ['a name nobody listed', named('evil.example.net', 443), [5, 2], 'no-rule'],
    ['a name with a NUL', named('a.example\0.net', 443), [5, 2], 'not-ldh'],
    ['port 0', named('api.example.com', 0), [5, 2], 'bad-port'],
    ['loopback', Uint8Array.of(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0x15, 0x38), [5, 2], 'loopback'],
    [
      'loopback in IPv6 for IPv4',
      Uint8Array.of(5, 1, 0, 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 1, 1),
      [5, 2],
      'loopback',
    ],
    ['BIND', named('api.example.com', 443, 2), [5, 7], 'bad-request'],
    ['UDP', named('api.example.com', 443, 3), [5, 7], 'bad-request'],
    ['an address of no kind', Uint8Array.of(5, 1, 0, 5, 1, 0, 9, 1, 2, 3), [5, 8], null],
  ])('refuses %s', async (_what, bytes, answer, reason) => {
    net.rules.hosts.push(rule('api.example.com'));
    const heard = Buffer.from(await net.say(bytes), 'latin1');
    expect([...heard.subarray(0, 4)]).toEqual([5, 0, ...answer]);
    expect(net.decisions.map((decision) => decision.reason)).toEqual(reason === null ? [] : [reason]);
    expect(net.dialled).toEqual([]);
  });

  it('speaks to nobody who offers no method it has', async () => {
    expect(Buffer.from(await net.say(Uint8Array.of(5, 1, 2)), 'latin1')).toEqual(Buffer.from([5, 0xff]));
  });
});
