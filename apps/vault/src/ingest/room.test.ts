import { expect, it } from '@jest/globals';
import { Room } from './room.js';

it('lets so many in at once, in the order they came, and goes on after one that fails', async () => {
  const room = new Room(2);
  const began: number[] = [];
  const ends: (() => void)[] = [];
  const work = [0, 1, 2, 3, 4].map((n) =>
    room.use(async () => {
      began.push(n);
      await new Promise<void>((end) => ends.push(end));
      if (n === 1) throw new Error('one fails');
      return n;
    }),
  );
  const settled = Promise.allSettled(work);
  for (const inside of [2, 3, 4, 5]) {
    await new Promise((turn) => setImmediate(turn));
    expect(began).toHaveLength(inside);
    ends.shift()?.();
  }
  ends.shift()?.();
  expect((await settled).map((one) => (one.status === 'fulfilled' ? one.value : 'failed'))).toEqual([
    0,
    'failed',
    2,
    3,
    4,
  ]);
  expect(began).toEqual([0, 1, 2, 3, 4]);
  expect(await room.use(() => Promise.resolve(7))).toBe(7);
});
