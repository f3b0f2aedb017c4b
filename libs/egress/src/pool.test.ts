import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { AddressPool } from './pool.js';

const HOUR = 3_600_000;

describe('the pool of addresses', () => {
  it('gives each name an address of 198.18.0.0/15, and the same one again', () => {
    const pool = new AddressPool();
    expect([pool.addressOf('a.example'), pool.addressOf('b.example'), pool.addressOf('a.example')]).toEqual([
      '198.18.0.1',
      '198.18.0.2',
      '198.18.0.1',
    ]);
    for (let i = 2; i < 65_536; i++) pool.addressOf(`${String(i)}.example`);
    expect(pool.nameOf('198.19.0.0')).toBe('65535.example');
    expect(pool.addressOf('one.more.example')).toBeUndefined();
    expect([pool.addressOf('a.example'), pool.nameOf('198.18.0.2'), pool.nameOf('127.0.0.1')]).toEqual([
      '198.18.0.1',
      'b.example',
      undefined,
    ]);
  });

  it('gives an address to another name an hour after its last answer, that of the one asked for longest ago first', () => {
    let now = 0;
    const pool = new AddressPool({ most: 2, now: () => now });
    pool.addressOf('a.example');
    now += 1000;
    pool.addressOf('b.example');
    now = HOUR - 1;
    expect(pool.addressOf('c.example')).toBeUndefined();
    now = HOUR;
    expect([pool.addressOf('c.example'), pool.nameOf('198.18.0.1'), pool.addressOf('a.example')]).toEqual([
      '198.18.0.1',
      'c.example',
      undefined,
    ]);
    now = HOUR + 1000;
    expect(pool.addressOf('a.example')).toBe('198.18.0.2');
  });

  it('takes none away that is connected to, nor one that is fixed', () => {
    let now = 0;
    const pool = new AddressPool({ most: 2, now: () => now });
    pool.fixed('db.example');
    pool.addressOf('b.example');
    const done = pool.hold('b.example');
    now = 5 * HOUR;
    expect(pool.addressOf('c.example')).toBeUndefined();
    done();
    now += HOUR - 1;
    expect(pool.addressOf('c.example')).toBeUndefined();
    now += 1;
    expect([pool.addressOf('c.example'), pool.nameOf('198.18.0.1')]).toEqual(['198.18.0.2', 'db.example']);
  });

  it('never lets an address mean another name within an hour of an answer, whatever is asked for', () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      wait: fc.integer({ min: 0, max: HOUR }),
      hold: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let now = 0;
        const pool = new AddressPool({ most: 3, now: () => now });
        const told = new Map<string, { name: string; at: number }>();
        for (const { name, wait, hold } of steps) {
          now += wait;
          const address = pool.addressOf(name);
          if (address === undefined) continue;
          const before = told.get(address);
          if (before !== undefined && before.name !== name) expect(now - before.at).toBeGreaterThanOrEqual(HOUR);
          told.set(address, { name, at: now });
          expect(pool.nameOf(address)).toBe(name);
          if (hold) pool.hold(name)();
        }
      }),
    );
  });
});
