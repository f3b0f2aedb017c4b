import { writeFileSync } from 'node:fs';
import { draft, freshHome, log, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';
import { SessionReader } from './read.js';

afterAll(removeHomes);

describe('reading', () => {
  it('gives any run of entries, byte for byte, while the log grows', async () => {
    const home = freshHome();
    const journal = await openSession(home, 's');
    const reader = new SessionReader(home, 's');
    for (let round = 0; round < 3; round++) {
      await journal.append(Array.from({ length: 150 }, (_, i) => draft({ t: 'ü'.repeat((i * 37) % 300) })));
      const lines = log(home, 's')
        .toString('latin1')
        .split('\n')
        .slice(0, -1)
        .map((l) => `${l}\n`);
      expect(reader.entries()).toBe(lines.length);
      for (const [from, to] of [
        [0, 0],
        [0, 1],
        [0, lines.length],
        [63, 65],
        [64, 128],
        [100, 333 % lines.length],
        [lines.length, lines.length],
        [lines.length - 1, lines.length],
      ] as const) {
        if (to >= from)
          expect(Buffer.from(reader.range(from, to)).toString('latin1')).toBe(lines.slice(from, to).join(''));
      }
      expect(() => reader.range(0, lines.length + 1)).toThrow(RangeError);
      expect(() => reader.range(5, 4)).toThrow(RangeError);
    }
    reader.close();
    await journal.close();
    expect(() => new SessionReader(home, 'nobody')).toThrow(/there is no session nobody/);
  });

  it('does not take a line that is being written for an entry', async () => {
    const home = freshHome();
    await (await openSession(home, 's')).close();
    const whole = log(home, 's');
    writeFileSync(home.logFile('s'), Buffer.concat([whole, Buffer.from('{"v":1,')]));
    const reader = new SessionReader(home, 's');
    expect(reader.entries()).toBe(1);
    expect(Buffer.from(reader.range(0, 1))).toEqual(whole);
    reader.close();
  });
});
