// How a person hears of a request: by a real process in the place of the desktop's program.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NOTIFIER, OutsidePrograms } from '../confine/outside-programs.js';
import { Reach } from '../confine/reach.js';
import { capturedIo, removeFolders } from '../testing/cli.fixture.js';
import { until } from '../testing/recorder.fixture.js';
import { removeMade, TestBook } from './book.fixture.js';
import type { Request } from './entry.js';
import { notify } from './notify.js';

afterAll(() => {
  removeFolders();
  removeMade();
});

it('a request is told in a line where that was asked for, and shown by the desktop once in a while, with nothing in it that acts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd7-notify-'));
  try {
    const said = join(folder, 'said');
    writeFileSync(join(folder, 'notify-send'), `#!/bin/sh\nfor word; do printf '%s\\n' "$word"; done >> ${said}\n`, {
      mode: 0o755,
    });
    const io = { ...capturedIo({ home: folder }), env: { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/none' } };
    const request = (id: string): Request => ({
      id,
      wanted: { right: 'write', what: '/x/<b>\u001b[2J&', below: false, raw: false },
      reason: '',
      by: { pid: 1, program: 'x' },
      made: new Date(0),
      state: 'pending',
    });
    const outside = new OutsidePrograms(Reach.alone(new TestBook().book.ruleset), { PATH: '/usr/bin:/bin' });
    outside.find(NOTIFIER, [folder]);
    const told = { project: '/project', isTold: true, outside };
    notify(request('r1'), told, io);
    notify(request('r2'), told, io);
    expect(io.lines).toEqual([
      expect.stringMatching(
        /^nd7: r1: a program inside asks for write '\/x\/<b>⟦ESC⟧\[2J&': nd7 allow r1, or nd7 deny r1$/,
      ),
      expect.stringContaining('r2'),
    ]);
    await until('it is shown', () => existsSync(said) && readFileSync(said, 'utf8').includes('nd7 grants'));
    const shown = readFileSync(said, 'utf8');
    expect(shown).toContain("write '/x/&lt;b&gt;⟦ESC⟧[2J&amp;'");
    expect(shown.match(/asks for more/g)).toHaveLength(1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
