// docker-compose.yml cannot be brought up without an engine; it is checked against the compose specification's schema and
// against what the programs it names really read.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import Ajv from 'ajv';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..', '..');
const require = createRequire(join(root, 'package.json'));

interface Service {
  build?: { dockerfile?: string };
  environment?: Record<string, string>;
  depends_on?: Record<string, unknown>;
  networks?: string[];
  volumes?: string[];
}

describe('docker-compose.yml', () => {
  const file = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
    networks: Record<string, unknown>;
  };

  it('follows the compose specification', () => {
    const schema = JSON.parse(
      readFileSync(join(require.resolve('docker-compose/package.json'), '..', 'schema/compose-spec.json'), 'utf8'),
    ) as object;
    const ajv = new Ajv({ allErrors: true, unknownFormats: 'ignore' });
    const check = ajv.compile({ ...schema, $schema: 'http://json-schema.org/draft-07/schema#' });
    check(file);
    expect(check.errors ?? []).toEqual([]);
  });

  it('names only services, networks, volumes and files that exist', () => {
    for (const service of Object.values(file.services)) {
      for (const name of Object.keys(service.depends_on ?? {})) expect(Object.keys(file.services)).toContain(name);
      for (const name of service.networks ?? []) expect(Object.keys(file.networks)).toContain(name);
      for (const mount of service.volumes ?? []) expect(Object.keys(file.volumes)).toContain(mount.split(':')[0]);
      if (service.build?.dockerfile !== undefined)
        expect(readFileSync(join(root, service.build.dockerfile), 'utf8')).toMatch(/^FROM /m);
    }
  });

  it('sets only variables that the vault reads', () => {
    const known = readFileSync(join(root, 'apps/vault/src/config.ts'), 'utf8');
    for (const name of Object.keys(file.services['vault']?.environment ?? {})) expect(known).toContain(name);
  });
});
