import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { installedChromium, NONE, playwright } from './chromium.js';

const root = join(import.meta.dirname, '..', '..', '..');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-chromium-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function program(name: string, mode: number): string {
  const path = join(folder, name);
  writeFileSync(path, '#!/bin/sh\n', { mode });
  return path;
}

describe('which Chromium the browser tests take', () => {
  it('the one that ND7_CHROMIUM names, before one on the PATH', () => {
    const [named, other] = [program('mine', 0o755), program('chromium', 0o755)];
    expect(installedChromium(root, { ND7_CHROMIUM: named, PATH: folder })).toBe(named);
    expect(installedChromium(root, { PATH: folder })).toBe(other);
  });

  it('only a program: a file that cannot be run is passed over, and a folder of its name', () => {
    const path = program('chromium', 0o644);
    expect(installedChromium(root, { PATH: folder })).not.toBe(path);
    mkdirSync(join(folder, 'chrome'));
    expect(() => installedChromium(root, { ND7_CHROMIUM: join(folder, 'chrome') })).toThrow(/no program is there/);
  });

  it('refuses a name behind which no program is, and says how to mend it', () => {
    expect(() => installedChromium(root, { ND7_CHROMIUM: join(folder, 'gone') })).toThrow(
      /ND7_CHROMIUM is .*gone, and no program is there: name one, or "none"/,
    );
  });

  it('knows where Playwright keeps its own, and what fetches it', () => {
    const { path, cli } = playwright(root);
    expect([isAbsolute(path), existsSync(cli)]).toEqual([true, true]);
  });

  it('none, where that is asked for', () => {
    program('chromium', 0o755);
    expect(installedChromium(root, { ND7_CHROMIUM: NONE, PATH: folder })).toBeUndefined();
  });
});
