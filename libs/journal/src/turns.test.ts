// Appends and syncs that come at any moment of another's: nobody who comes as the last turn ends waits for the next one to come.
import { setTimeout as sleep } from 'node:timers/promises';
import { draft, entries, freshHome, removeHomes } from './journal.fixture.js';
import { openSession } from './open.js';

afterAll(removeHomes);

it.each([
  ['written', false],
  ['on the disk', true],
])('an entry is %s, however many steps after another it was asked for', async (_what, sync) => {
  const home = freshHome();
  const journal = await openSession(home, 's');
  const after = async (steps: number): Promise<unknown> => {
    for (let i = 0; i < steps; i++) await undefined;
    return journal.append([draft()], { sync });
  };
  for (let steps = 0; steps < 100; steps++) {
    const both = Promise.all([journal.append([draft()], { sync }), after(steps)]);
    expect([
      steps,
      await Promise.race([both.then(() => 'done'), sleep(2_000, 'waits for ever', { ref: false })]),
    ]).toEqual([steps, 'done']);
  }
  await journal.close();
  expect(entries(home, 's').length).toBe(201);
});
