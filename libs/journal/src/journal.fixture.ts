import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKernel } from '@nd7/blake3';
import { walk, type WalkResult } from '@nd7/chain';
import { readEntry, type EntryView } from '@nd7/entry';
import { verifySignatures } from '@nd7/signing';
import { referenceVerdict } from '@nd7/testing';
import { readHead } from './read.js';
import type { JournalDraft } from './journal.js';
import { openHome, type Home } from './home.js';
import { openSession } from './open.js';

const made: string[] = [];

/** A fresh home under the temporary folder; `removeHomes` in afterAll takes all of them away. */
export function freshHome(): Home {
  const base = mkdtempSync(join(tmpdir(), 'nd7-journal-'));
  made.push(base);
  return openHome(join(base, 'home'));
}

export function removeHomes(): void {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
}

let count = 0;

/** A draft that differs from every other of this process. */
export function draft(data: Record<string, unknown> = {}): JournalDraft {
  return {
    time: '2026-11-29T19:41:00.123Z',
    source: 'intent:claude-code',
    kind: 'tool.before',
    data: JSON.stringify({ n: count++, ...data }),
  };
}

export function log(home: Home, session: string): Buffer {
  return readFileSync(home.logFile(session));
}

export function entries(home: Home, session: string): EntryView[] {
  const lines = log(home, session).toString('latin1').split('\n');
  return lines.slice(0, -1).map((line) => readEntry(Buffer.from(line, 'latin1')));
}

export function data(entry: EntryView | undefined): Record<string, unknown> {
  return JSON.parse(entry?.data ?? 'null') as Record<string, unknown>;
}

/** Checks the whole log against its head, as any verifier does. */
export function verdict(home: Home, session: string): Promise<WalkResult> {
  const head = readHead(home, session);
  return walk(log(home, session), { session, kernel: createKernel(), verify: verifySignatures, ...(head && { head }) });
}

/** The log must be intact; with `reference` also for tests/reference/nd7ref.py, which takes its time. */
export async function expectIntact(home: Home, session: string, reference = false): Promise<WalkResult> {
  const result = await verdict(home, session);
  expect({ session, verdict: result.verdict, reason: result.reason, at: result.bad_entry }).toEqual({
    session,
    verdict: 'intact',
    reason: undefined,
    at: undefined,
  });
  if (reference) {
    const said = referenceVerdict(session, home.sessionDir(session));
    expect(said.text).toContain(`intact: ${result.entries} entries, head ${result.head}`);
  }
  return result;
}

export function keyFiles(home: Home, session: string): string[] {
  return readdirSync(home.sessionKeys(session)).sort();
}

export function sessionFiles(home: Home, session: string): string[] {
  return readdirSync(home.sessionDir(session)).sort();
}

/** The built lib, for child processes; the `test` target builds it first. */
export const DIST = `file://${join(import.meta.dirname, '../dist/index.js')}`;

/** A closed session with `count` entries besides entry 0, sealed if asked. */
export async function closedSession(home: Home, id: string, count: number, seal = false): Promise<void> {
  const journal = await openSession(home, id);
  await journal.append(Array.from({ length: count }, () => draft()));
  await journal.close({ seal });
}
