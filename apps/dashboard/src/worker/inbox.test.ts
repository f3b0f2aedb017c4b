import { Inbox } from './inbox.js';

const chunk = (...bytes: number[]) => Uint8Array.from(bytes);

it('gives chunks in order, before and after somebody reads, and says when each is done with', async () => {
  const taken: number[] = [];
  const inbox = new Inbox((bytes) => taken.push(bytes));
  inbox.push(chunk(1));
  const read: number[] = [];
  const reading = (async () => {
    for await (const one of inbox) read.push(...one);
  })();
  inbox.push(chunk(2, 3));
  await Promise.resolve();
  inbox.push(chunk(4));
  inbox.end();
  await reading;
  expect([read, taken]).toEqual([
    [1, 2, 3, 4],
    [1, 2, 1],
  ]);
});

it('throws at its reader when it is stopped', async () => {
  const inbox = new Inbox(() => undefined);
  const reading = (async () => {
    for await (const one of inbox) expect(one.length).toBeGreaterThan(0);
  })();
  inbox.stop();
  await expect(reading).rejects.toThrow('stopped');
});
