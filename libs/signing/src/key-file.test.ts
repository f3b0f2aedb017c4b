import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nobleVerifier } from '@nd7/tlog';
import { createKeyFile, destroyKeyFile, loadKeyFile, parsePem, SigningError, verifySignatures } from './index.js';

const isRoot = process.geteuid?.() === 0;
/** `nobody`, as far as this test cares: a user that is not root. */
const NOBODY = 65534;
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nd7-key-'));
  path = join(folder, 'machine.key');
});
afterEach(() => rmSync(folder, { recursive: true }));

function failure(work: () => unknown): SigningError {
  try {
    work();
  } catch (error) {
    if (error instanceof SigningError) return error;
    throw error;
  }
  throw new Error('it went well');
}

/** Runs code in another process, as an ordinary user where this one is root; gives what it prints. */
function asUser(code: string): string {
  const script = `
    const { createKeyFile, loadKeyFile, destroyKeyFile } = await import(${JSON.stringify(import.meta.resolve('@nd7/signing'))});
    if (process.geteuid() === 0) { process.setgroups([]); process.setegid(${String(NOBODY)}); process.seteuid(${String(NOBODY)}); }
    const attempt = (work) => { try { return work(); } catch (error) { return error.code; } };
    ${code}`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).trim();
}

test('made once, 0600, and loaded again it signs the same', async () => {
  const made = createKeyFile(path);
  expect(statSync(path).mode & 0o7777).toBe(0o600);
  const loaded = loadKeyFile(path);
  expect(loaded.publicKey).toBe(made.publicKey);
  const message = new TextEncoder().encode('message');
  expect(loaded.sign(message)).toEqual(made.sign(message));
  const item = { key: new Uint8Array(Buffer.from(made.publicKey, 'hex')), message, signature: loaded.sign(message) };
  const items = [item, { ...item, message: new Uint8Array(1) }];
  expect(await verifySignatures(items)).toEqual([true, false]);
  expect(await nobleVerifier(items)).toEqual([true, false]);
  expect(readFileSync(path, 'utf8')).toMatch(
    /^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+-----END PRIVATE KEY-----\n$/,
  );
  // Nothing of the private key shows where a key pair is printed.
  expect(Object.keys(made).sort()).toEqual(['publicKey', 'sign']);
});

test('the umask does not widen it', () => {
  const before = process.umask(0);
  try {
    createKeyFile(path);
  } finally {
    process.umask(before);
  }
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('an existing file, a link, a folder are never written over', () => {
  createKeyFile(path);
  const before = readFileSync(path);
  expect(failure(() => createKeyFile(path)).code).toBe('exists');
  expect(readFileSync(path).equals(before)).toBe(true);
  const link = join(folder, 'link');
  symlinkSync(join(folder, 'elsewhere'), link);
  expect(failure(() => createKeyFile(link)).code).toBe('exists');
  expect(existsSync(join(folder, 'elsewhere'))).toBe(false);
  const error = failure(() => createKeyFile(join(folder, 'none', 'machine.key')));
  expect(error.code).toBe('io');
  expect(error.message).toContain(join(folder, 'none', 'machine.key'));
});

test.each([0o644, 0o640, 0o604, 0o660, 0o601, 0o610, 0o777, 0o620])(
  'mode %o is refused, and the message says how to mend it',
  (mode) => {
    createKeyFile(path);
    chmodSync(path, mode);
    const error = failure(() => loadKeyFile(path));
    expect(error.code).toBe('permissions');
    expect(error.message).toContain(`chmod 600 ${path}`);
    chmodSync(path, 0o600);
    loadKeyFile(path);
  },
);

test('0400 is enough', () => {
  const { publicKey } = createKeyFile(path);
  chmodSync(path, 0o400);
  expect(loadKeyFile(path).publicKey).toBe(publicKey);
});

test("another user's file is refused", () => {
  // Root can give a file away; anybody else finds one of root's.
  if (isRoot) {
    createKeyFile(path);
    chownSync(path, NOBODY, NOBODY);
  }
  const error = failure(() => loadKeyFile(isRoot ? path : '/etc/passwd'));
  expect(error.code).toBe('permissions');
  expect(error.message).toMatch(/belongs to user .*chown/);
});

test('missing, a folder, a pipe', () => {
  expect(failure(() => loadKeyFile(path)).code).toBe('missing');
  mkdirSync(path);
  expect(failure(() => loadKeyFile(path)).code).toBe('unreadable');
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // It does not wait for somebody to write into it.
  expect(failure(() => loadKeyFile(pipe)).code).toBe('unreadable');
});

test('half-written, empty, long, and of another kind: no key', () => {
  createKeyFile(path);
  const pem = readFileSync(path);
  const other = join(folder, 'other');
  const attempt = (content: Uint8Array | string): string => {
    writeFileSync(other, content, { mode: 0o600 });
    const error = failure(() => loadKeyFile(other));
    expect(error.message).toContain(other);
    return error.code;
  };
  for (let length = 0; length < pem.length - 30; length++) expect(attempt(pem.subarray(0, length))).toBe('format');
  expect(attempt('nonsense')).toBe('format');
  expect(attempt(new Uint8Array(1 << 20))).toBe('format');
  expect(attempt(new Uint8Array(pem.length))).toBe('format');
  expect(attempt(generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))).toBe('format');
  expect(attempt(createPublicKey(pem).export({ type: 'spki', format: 'pem' }))).toBe('format');
});

// RFC 8410 section 10.3.
test('a key that another program made is a key', () => {
  const pem =
    '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n';
  writeFileSync(path, pem, { mode: 0o600 });
  expect(loadKeyFile(path).publicKey).toBe('19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1');
});

test('destroyed: overwritten, then gone; again is no error', () => {
  createKeyFile(path);
  const before = readFileSync(path);
  const witness = join(folder, 'witness');
  linkSync(path, witness);
  destroyKeyFile(path);
  expect(existsSync(path)).toBe(false);
  // What another name still leads to is not the key any more.
  const after = readFileSync(witness);
  expect(after.length).toBe(before.length);
  expect(parsePem(after.toString())).toBeUndefined();
  expect(after.includes('PRIVATE')).toBe(false);
  destroyKeyFile(path);
});

test('a link is not followed when a key is destroyed', () => {
  const target = join(folder, 'target');
  writeFileSync(target, 'precious');
  symlinkSync(target, path);
  expect(failure(() => destroyKeyFile(path)).code).toBe('io');
  expect(readFileSync(target, 'utf8')).toBe('precious');
});

test('an ordinary user makes, loads and destroys its own', () => {
  const own = join(folder, 'own');
  mkdirSync(own, { mode: 0o700 });
  chmodSync(folder, 0o711);
  if (isRoot) chownSync(own, NOBODY, NOBODY);
  const key = join(own, 'machine.key');
  const said = asUser(`
    const made = createKeyFile(${JSON.stringify(key)});
    const same = loadKeyFile(${JSON.stringify(key)}).publicKey === made.publicKey;
    destroyKeyFile(${JSON.stringify(key)});
    console.log(String(same) + ' ' + attempt(() => loadKeyFile(${JSON.stringify(key)})));`);
  expect(said).toBe('true missing');
});

test('a file that may not be read, a folder that may not be written', () => {
  createKeyFile(path);
  chmodSync(path, isRoot ? 0o600 : 0o000);
  chmodSync(folder, isRoot ? 0o711 : 0o500);
  const said = asUser(`
    console.log(attempt(() => loadKeyFile(${JSON.stringify(path)})), attempt(() => createKeyFile(${JSON.stringify(join(folder, 'new.key'))})));`);
  chmodSync(folder, 0o700);
  expect(said).toBe('unreadable io');
});
