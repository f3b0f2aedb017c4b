import { describe, expect, it } from '@jest/globals';
import { readConnect } from './connect-head.js';

const head = (authority: string, more = ''): Buffer =>
  Buffer.from(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${more}\r\n`, 'latin1');

describe('a CONNECT in its plain form', () => {
  it('says whom it means, the second time as the first', () => {
    for (let i = 0; i < 2; i++)
      expect(readConnect(head('API.example.com:443'))).toEqual({
        target: { kind: 'name', host: 'api.example.com', port: 443 },
        length: head('API.example.com:443').length,
      });
  });

  it('is read anew where one byte of it is another', () => {
    const known = head('api.example.com:443');
    expect(readConnect(known)?.target.host).toBe('api.example.com');
    for (let at = 0; at < known.length; at++) {
      const other = Buffer.from(known);
      other[at] = (known[at] as number) ^ 1;
      const read = readConnect(other);
      // What is one still means what stands in it now.
      if (read !== undefined) expect(other.toString('latin1').toLowerCase()).toContain(read.target.host);
    }
    expect(readConnect(head('api.example.com:444'))?.target.port).toBe(444);
    expect(readConnect(head('api.example.com:443', 'Content-Length: 1\r\n'))).toBeUndefined();
    expect(readConnect(head('api.example.com:443'))?.target.port).toBe(443);
  });

  it('means the same however many others came between', () => {
    for (let i = 0; i < 600; i++)
      expect(readConnect(head(`h${String(i)}.example.com:443`))?.target.host).toBe(`h${String(i)}.example.com`);
    expect(readConnect(head('h0.example.com:443'))?.target.host).toBe('h0.example.com');
  });
});
