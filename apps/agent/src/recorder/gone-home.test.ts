// A recorder whose home is deleted serves nobody: it ends, whenever that was.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { BIN, removeThrowAways, throwAway } from '../testing/recorder.fixture.js';

afterEach(removeThrowAways);

it.each([0, 0, 0, 1, 20, 200])('a home that goes %i ms after its recorder listens', async (later) => {
  const home = throwAway();
  const recorder = spawn(process.execPath, [BIN, 'recorder'], {
    env: { ...process.env, ND7_HOME: home },
    stdio: 'ignore',
  });
  const ended = once(recorder, 'exit');
  try {
    const socket = join(home, 'run', 'hook');
    while (!existsSync(socket)) if (later > 0) await sleep(1);
    await sleep(later);
    // In one step, as a folder is moved away; deleting it takes several.
    renameSync(join(home, 'run'), join(home, 'gone'));
    rmSync(join(home, 'gone'), { recursive: true });
    expect(await Promise.race([ended.then(() => 'ended'), sleep(10_000, 'still there')])).toBe('ended');
  } finally {
    recorder.kill('SIGKILL');
  }
});
