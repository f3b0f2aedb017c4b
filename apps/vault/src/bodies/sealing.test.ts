import { afterAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '@nd7/signing';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSealingKey, loadSealingKey, sealingKeys } from './key-file.js';
import { openBody, sealBody, unwrapKey, wrapKey, type BodyPlace } from './sealing.js';

const key = systemRandom(32);
const place: BodyPlace = { team: 'acme', machine: 'a'.repeat(64), session: 's', from: 0, to: 9, head: 'b'.repeat(64) };
const plain = Buffer.from('what was said');

describe('a sealed body', () => {
  it('opens at its place, and never looks the same twice', () => {
    const [one, two] = [sealBody(key, plain, place, systemRandom), sealBody(key, plain, place, systemRandom)];
    expect(openBody(key, one, place)?.equals(plain)).toBe(true);
    expect(one.equals(two)).toBe(false);
    expect(one.includes(plain)).toBe(false);
  });

  it.each<[keyof BodyPlace, Partial<BodyPlace>]>([
    ['team', { team: 'other' }],
    ['machine', { machine: 'c'.repeat(64) }],
    ['session', { session: 't' }],
    ['from', { from: 1 }],
    ['to', { to: 10 }],
    ['head', { head: 'd'.repeat(64) }],
  ])('does not open under another %s', (_what, over) => {
    expect(openBody(key, sealBody(key, plain, place, systemRandom), { ...place, ...over })).toBeUndefined();
  });

  it('does not open when any byte was changed, or under another key', () => {
    const sealed = sealBody(key, plain, place, systemRandom);
    for (let i = 0; i < sealed.length; i += 1) {
      const changed = Buffer.from(sealed);
      changed[i]! ^= 1;
      expect(openBody(key, changed, place)).toBeUndefined();
    }
    expect(openBody(systemRandom(32), sealed, place)).toBeUndefined();
    expect(openBody(key, sealed.subarray(0, 20), place)).toBeUndefined();
  });

  it('is opened by a key that opens only for its session', () => {
    const team = systemRandom(32);
    const wrapped = wrapKey(team, key, place, systemRandom);
    expect(unwrapKey(team, wrapped, place)?.equals(key)).toBe(true);
    expect(unwrapKey(team, wrapped, { ...place, session: 'other' })).toBeUndefined();
  });
});

describe('a sealing key file', () => {
  const folders: string[] = [];
  afterAll(() => folders.forEach((path) => rmSync(path, { recursive: true })));
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'nd7-sealing-'));
    folders.push(path);
    return path;
  };

  it('is made 0600, numbered, and never written over', () => {
    const keys = folder();
    expect([createSealingKey(keys, 'acme', systemRandom), createSealingKey(keys, 'acme', systemRandom)]).toEqual([
      '0001',
      '0002',
    ]);
    expect(sealingKeys(keys, 'acme')).toEqual(['0001', '0002']);
    expect(sealingKeys(keys, 'other')).toEqual([]);
    expect(statSync(join(keys, 'sealing/acme/0001.key')).mode & 0o777).toBe(0o600);
    expect(loadSealingKey(keys, 'acme', '0001').equals(loadSealingKey(keys, 'acme', '0002'))).toBe(false);
  });

  it('is refused when others can read it, when it is no key, or when it is gone, saying how to mend it', () => {
    const keys = folder();
    createSealingKey(keys, 'acme', systemRandom);
    const path = join(keys, 'sealing/acme/0001.key');
    chmodSync(path, 0o640);
    expect(() => loadSealingKey(keys, 'acme', '0001')).toThrow(`chmod 600 ${path}`);
    chmodSync(path, 0o600);
    writeFileSync(path, 'half');
    expect(() => loadSealingKey(keys, 'acme', '0001')).toThrow('64 hex digits');
    expect(() => loadSealingKey(keys, 'acme', '0007')).toThrow('backup');
  });
});
