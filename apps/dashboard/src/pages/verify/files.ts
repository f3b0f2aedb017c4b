import { isSessionId } from '@nd7/entry';

/** What a reader dropped, sorted by what the files are. */
export interface Evidence {
  log?: File;
  head?: File;
  receipts: File[];
  /** The session's id as the folder or the entries have it: a proposal, the reader decides. */
  session?: string;
  /** What was dropped and is none of the three, with what it looks like. */
  refused: { name: string; saw: string }[];
}

/** A file and the folder it lay in, where that is known. */
export interface Dropped {
  file: File;
  folder?: string;
}

/** A receipt or head file has at most this many bytes. */
const SMALL = 1_048_576;
const RECEIPT = 'c2sp.org/tlog-proof@v1\n';

const MAGIC: readonly (readonly [string, string])[] = [
  ['\u0089PNG', 'a PNG picture'],
  ['\u00ff\u00d8\u00ff', 'a JPEG picture'],
  ['%PDF', 'a PDF document'],
  ['PK\u0003\u0004', 'a ZIP archive'],
  ['\u001f\u008b', 'a gzip archive'],
  ['\u0028\u00b5\u002f\u00fd', 'a zstd archive: unpack it first'],
  ['\u007fELF', 'a program'],
  ['-----BEGIN', 'a key or certificate in PEM: keep it to yourself'],
];

/** Sorts files by their first bytes, not by what they are called. */
export async function sortFiles(dropped: readonly Dropped[]): Promise<Evidence> {
  const evidence: Evidence = { receipts: [], refused: [] };
  for (const { file, folder } of dropped) {
    const start = latin1(new Uint8Array(await file.slice(0, 256).arrayBuffer()));
    if (start.startsWith(RECEIPT) && file.size <= SMALL) evidence.receipts.push(file);
    else if (start.startsWith('{"v":') || file.name.endsWith('.jsonl')) {
      if (evidence.log !== undefined)
        evidence.refused.push({ name: file.name, saw: `a second log beside ${evidence.log.name}` });
      else {
        evidence.log = file;
        if (folder !== undefined && isSessionId(folder)) evidence.session = folder;
      }
    } else if (/^\s*\{/.test(start) && file.size <= 4096) {
      // One of no form would count as none, and the report would say that none was given.
      if (looksLikeHead(await file.text())) evidence.head = file;
      else evidence.refused.push({ name: file.name, saw: 'JSON, but no head with its entries, hash and bytes' });
    } else evidence.refused.push({ name: file.name, saw: looksLike(start, file) });
  }
  if (evidence.log !== undefined && evidence.session === undefined) {
    const proposal = await sessionIn(evidence.log);
    if (proposal !== undefined) evidence.session = proposal;
  }
  return evidence;
}

/** By its members alone: the worker reads it, and says what it is worth. */
function looksLikeHead(text: string): boolean {
  let head: Record<string, unknown>;
  try {
    head = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return false;
  }
  const { entries, hash, bytes } = head;
  return Number.isInteger(entries) && Number.isInteger(bytes) && /^[0-9a-f]{64}$/.test(String(hash));
}

function looksLike(start: string, file: File): string {
  if (file.size === 0) return 'an empty file';
  const known = MAGIC.find(([magic]) => start.startsWith(magic));
  if (known !== undefined) return known[1];
  return /^[\t\n\r\u0020-\u007e\u0080-\u00ff]*$/.test(start)
    ? `text that begins “${start.slice(0, 24).trim()}”`
    : 'binary data';
}

/** The agent's own id of the session in the first entries. It is only what an agent said. */
async function sessionIn(log: File): Promise<string | undefined> {
  const text = latin1(new Uint8Array(await log.slice(0, 65_536).arrayBuffer()));
  const id = /"session_id":"([^"\\]{1,128})"/.exec(text)?.[1];
  return id !== undefined && isSessionId(id) ? id : undefined;
}

function latin1(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

/** Everything in a drop, folders too (a session's own folder is the simplest thing to drop). */
export async function droppedFiles(transfer: DataTransfer): Promise<Dropped[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file }));
  const found: Dropped[] = [];
  for (const entry of entries) await collect(entry, undefined, 0, found);
  return found;
}

const DEEPEST = 3;
const MOST_FILES = 2000;

async function collect(
  entry: FileSystemEntry,
  folder: string | undefined,
  depth: number,
  into: Dropped[],
): Promise<void> {
  if (into.length >= MOST_FILES) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => {
      (entry as FileSystemFileEntry).file(resolve, reject);
    });
    into.push(folder === undefined ? { file } : { file, folder });
  } else if (depth < DEEPEST) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => {
        reader.readEntries(resolve, reject);
      });
      if (some.length === 0) break;
      for (const one of some) await collect(one, entry.name, depth + 1, into);
    }
  }
}
