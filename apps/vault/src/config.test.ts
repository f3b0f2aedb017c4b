import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, VaultConfig } from './config.js';

const GOOD = { ND7_VAULT_NAME: 'vault.example', ND7_DATABASE_URL: 'postgres://u:hunter2@h/d', ND7_VAULT_KEYS: '/keys' };

function linesOf(env: Record<string, string>): readonly string[] {
  try {
    new VaultConfig(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.lines;
  }
}

describe('configuration', () => {
  it('is documented: every setting stands in docs/operate.md and in serve --help', () => {
    const read = (path: string): string => readFileSync(join(import.meta.dirname, path), 'utf8');
    const names = [...read('config.ts').matchAll(/^ {2}(ND7_[A-Z_]+):/gm)].map(([, name]) => name as string);
    expect(names.length).toBeGreaterThan(12);
    for (const name of names)
      expect([name, read('../../../docs/operate.md').includes(`\`${name}\``)]).toEqual([name, true]);
    for (const name of names.filter((one) => one !== 'ND7_VAULT_PORT'))
      expect([name, read('cli/program.ts').includes(`  ${name}`)]).toEqual([name, true]);
  });

  it('needs three values and has the rest by default', () => {
    const config = new VaultConfig(GOOD);
    expect(config).toMatchObject({
      name: 'vault.example',
      host: '127.0.0.1',
      port: 4170,
      ownerUrl: GOOD.ND7_DATABASE_URL,
      signerState: '/keys/signer',
      signerSocket: undefined,
      patience: {
        every: 30_000,
        quietAfter: 3,
        sessionLag: 300_000,
        sessionGrace: 3_600_000,
        awayLimit: 604_800_000,
        clockTolerance: 120_000,
      },
    });
    expect(config.dashboardDir).toMatch(/apps\/dashboard\/dist$/);
  });

  it('takes an empty value for none', () => {
    expect(new VaultConfig({ ...GOOD, ND7_VAULT_PORT: '' }).port).toBe(4170);
  });

  it('names everything that is missing at once', () => {
    expect(linesOf({})).toEqual([
      'ND7_VAULT_NAME is not set',
      'ND7_DATABASE_URL is not set',
      'ND7_VAULT_KEYS is not set',
    ]);
  });

  it.each([
    ['ND7_VAULT_NAME', 'Vault', /is "Vault": must be 1 to 64 of a-z/],
    ['ND7_VAULT_NAME', 'a/b', /must be 1 to 64/],
    ['ND7_VAULT_PORT', '70000', /is "70000": must be a whole number from 0 to 65535/],
    ['ND7_VAULT_PORT', 'http', /must be a whole number/],
    ['ND7_DATABASE_POOL', '1', /must be a whole number from 2 to 200/],
    ['ND7_VAULT_WATCH_EVERY', '0', /is "0": must be a whole number from 1 to 3600/],
    ['ND7_VAULT_QUIET_AFTER', '1', /must be a whole number from 2 to 1000/],
    ['ND7_VAULT_SESSION_LAG', '5m', /is "5m": must be a whole number from 10 to 86400/],
    ['ND7_VAULT_SESSION_GRACE', '1', /must be a whole number from 10 to 2592000/],
    ['ND7_VAULT_AWAY_LIMIT', '-60', /must be a whole number from 60 to 31536000/],
    ['ND7_VAULT_CLOCK_TOLERANCE', '301', /must be a whole number from 1 to 300/],
    ['ND7_VAULT_MAX_INGESTS', '1.5', /must be a whole number/],
    ['ND7_VAULT_THREADS', '65', /must be a whole number from 0 to 64/],
    ['ND7_VAULT_PUBLIC_URL', 'ftp://x', /must be the http or https URL/],
    ['ND7_LOG_LEVEL', 'loud', /must be debug, info, warn, error or silent/],
    ['ND7_VAULT_METRICS_TOKEN', 'short', /at least 16/],
  ])('says what %s=%s must be', (name, value, line) => {
    const lines = linesOf({ ...GOOD, [name]: value });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(line);
    expect(lines[0]?.startsWith(`${name} `)).toBe(true);
  });

  it.each(['ND7_DATABASE_URL', 'ND7_DATABASE_OWNER_URL'])('never repeats a password of %s', (name) => {
    const lines = linesOf({ ...GOOD, [name]: 'mysql://u:hunter2@h/d' });
    expect(lines).toEqual([`${name} must look like postgres://user:password@host:5432/database`]);
  });
});
