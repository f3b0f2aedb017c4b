import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const INFO = 'what tsc has built';

describe('bin/nd7.js', () => {
  let place: string;
  const run = (): string => {
    const { stdout, stderr } = spawnSync(process.execPath, [join(place, 'bin/nd7.js')], { encoding: 'utf8' });
    return stdout + stderr;
  };
  const setTime = (name: string, seconds: number): void => utimesSync(join(place, 'dist', name), seconds, seconds);

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'nd7-entry-'));
    mkdirSync(join(place, 'dist/bundle'), { recursive: true });
    cpSync(join(ROOT, 'bin'), join(place, 'bin'), { recursive: true });
    writeFileSync(join(place, 'package.json'), '{"type":"module"}');
    writeFileSync(join(place, 'dist/main.js'), 'console.log("modules")');
    writeFileSync(join(place, 'dist/bundle/main.js'), 'console.log("bundle")');
    writeFileSync(join(place, 'dist/.tsbuildinfo'), INFO);
    const sha256 = createHash('sha256').update(INFO).digest('hex');
    writeFileSync(join(place, 'dist/bundle/made-of.json'), JSON.stringify({ inputs: ['.tsbuildinfo'], sha256 }));
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  it('takes the bundle where it is newer than what it was made of', () => {
    expect(run()).toBe('bundle\n');
  });

  it('takes it where files were copied in another order', () => {
    setTime('bundle/made-of.json', 1_000);
    expect(run()).toBe('bundle\n');
  });

  it('takes the modules where one of them was built since', () => {
    writeFileSync(join(place, 'dist/.tsbuildinfo'), 'something newer');
    setTime('bundle/made-of.json', 1_000);
    expect(run()).toBe('modules\n');
  });

  it.each(['bundle/made-of.json', '.tsbuildinfo'])('takes them without %s', (name) => {
    rmSync(join(place, 'dist', name));
    expect(run()).toBe('modules\n');
  });

  it('takes them where what the bundle was made of cannot be read', () => {
    writeFileSync(join(place, 'dist/bundle/made-of.json'), '{');
    expect(run()).toBe('modules\n');
  });
});

describe('the bundle', () => {
  const bundle = join(ROOT, 'dist/bundle');

  it('is the same program', () => {
    const help = (main: string): string =>
      spawnSync(process.execPath, [join(ROOT, 'dist', main), 'run', '--help'], { encoding: 'utf8' }).stdout;
    expect(help('bundle/main.js')).toContain('nd7 run');
    expect(help('bundle/main.js')).toBe(help('main.js'));
  });

  it('has the licences of the packages in it', () => {
    const text = readFileSync(join(bundle, 'LICENCES.txt'), 'utf8');
    for (const name of ['commander', 'zod', 'jsonc-parser', '@noble/hashes'])
      if (existsSync(join(ROOT, '../../node_modules', name))) expect(text).toContain(`${name} `);
  });
});
