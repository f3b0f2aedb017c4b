import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { readBlob, writeBlobs } from './blobs.js';
import { realDisk } from './disk.js';
import { draft, freshHome, log, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';

afterAll(removeHomes);

describe('detached values', () => {
  it('are on the disk before the entry that names them, 0600, and are found again', async () => {
    const home = freshHome();
    const value = Buffer.from('"a secret"');
    const bytes = Buffer.concat([Buffer.alloc(32, 7), value]);
    const hash = blake3Hex(bytes);
    const order: string[] = [];
    const journal = await openSession(home, 's', { disk: { ...realDisk, step: (s) => order.push(s) } });
    order.length = 0;
    await journal.append(
      [{ ...draft({ x: null }), detached: [{ at: '/x', blake3: hash, why: 'secret' }], blobs: [{ hash, bytes }] }],
      { sync: true },
    );
    expect(order).toEqual(['blob-written', 'blobs-synced', 'entries-written', 'entries-synced']);
    await journal.close();
    expect(statSync(join(home.blobs, hash)).mode & 0o777).toBe(0o600);
    expect(await readBlob(home, hash)).toEqual({ value });
    expect(log(home, 's').toString()).not.toContain('a secret');
    await writeBlobs(realDisk, home, [{ hash, bytes }]); // the same again is no error
    writeFileSync(join(home.blobs, hash), 'something else');
    expect(await readBlob(home, hash)).toBe('differs');
    expect(await readBlob(home, '0'.repeat(64))).toBe('missing');
    expect(await readBlob(home, '../../keys/machine.key')).toBe('missing');
  });
});
