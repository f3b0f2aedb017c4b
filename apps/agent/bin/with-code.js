// Runs the bundle of `nd7 run` and its host, one script, with the code that V8 has made of it in an earlier session: what a session runs through once is
// then neither parsed nor compiled. The code lies beside the script (`run.code`) and counts as much as that does: it is taken only where nobody else can
// write to it, and for exactly the file and the Node that it was made of. docs/adr/0033-code-is-kept-between-starts.md
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script, constants } from 'node:vm';
import { crc32 } from 'node:zlib';

/** Before the code: CRC-32 of all behind it, and how long the mark is, both 32 bits, little-endian; the mark. */
const HEAD = 8;

/** Starts the bundle in this folder; throws where there is none. */
export function start(folder) {
  const filename = join(folder, 'run.script.js');
  const kept = join(folder, 'run.code');
  const fd = fs.openSync(filename, 'r');
  const facts = fs.fstatSync(fd, { bigint: true });
  const source = fs.readFileSync(fd, 'latin1');
  fs.closeSync(fd);
  const cachedData = read(kept, facts);
  const importModuleDynamically = constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const script = new Script(source, { filename, cachedData, importModuleDynamically });
  const isNew = cachedData === undefined || script.cachedDataRejected === true;
  // Whoever has run a session says when there is time for it.
  if (isNew) globalThis[Symbol.for('nd7.keep-code')] = () => keep(kept, script, filename, markOf(facts));
  const module = { exports: {} };
  script.runInThisContext()(module.exports, createRequire(filename), module, filename, folder);
}

/** Changes with the script, whatever its times were set to, and with Node. */
function markOf({ dev, ino, size, mtimeNs, ctimeNs }) {
  return [dev, ino, size, mtimeNs, ctimeNs, process.execPath, process.version, process.arch].join(' ');
}

/** The code that is kept; undefined where there is none for this script, or somebody else could have written it. */
function read(path, script) {
  let fd;
  try {
    fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const { uid, mode } = fs.fstatSync(fd, { bigint: true });
    const isFile = (mode & BigInt(fs.constants.S_IFMT)) === BigInt(fs.constants.S_IFREG);
    if (!isFile || uid !== script.uid || (mode & 0o022n & ~script.mode) !== 0n) return undefined;
    const bytes = fs.readFileSync(fd);
    if (bytes.length < HEAD || crc32(bytes.subarray(4)) !== bytes.readUInt32LE(0)) return undefined;
    const end = HEAD + bytes.readUInt32LE(4);
    return bytes.toString('utf8', HEAD, end) === markOf(script) ? bytes.subarray(end) : undefined;
  } catch {
    return undefined;
  } finally {
    fs.closeSync(fd);
  }
}

/** Keeps the code for the next start, where the script is this user's and still the same. A start without it is slower, and that is all. */
function keep(path, script, filename, mark) {
  const draft = `${path}.${process.pid}`;
  try {
    const facts = fs.statSync(filename, { bigint: true });
    if (facts.uid !== BigInt(process.geteuid?.() ?? -1) || markOf(facts) !== mark) return;
    // Options of Node make other code of it.
    if (process.execArgv.length > 0 || process.env.NODE_OPTIONS !== undefined) return;
    const body = Buffer.concat([Buffer.from(mark), script.createCachedData()]);
    const bytes = Buffer.concat([Buffer.alloc(HEAD), body]);
    bytes.writeUInt32LE(Buffer.byteLength(mark), 4);
    bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
    const fd = fs.openSync(draft, 'wx', 0o600);
    try {
      // Whoever may read the script may read what was made of it.
      fs.fchmodSync(fd, Number(facts.mode) & 0o644);
      fs.writeFileSync(fd, bytes);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(draft, path);
  } catch {
    fs.rmSync(draft, { force: true });
  }
}
