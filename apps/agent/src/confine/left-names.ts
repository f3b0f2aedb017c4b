// What protected names held before a session that compares them, kept on the disk while it lives: where its front is killed, whoever writes its end compares before.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { packLeaves, unpackLeaves, type LeafRecord } from '@nd7/confine';
import { processFacts } from '@nd7/kernel';
import type { Ruleset } from '@nd7/policy';
import { pathOf, type News } from '../recorder/kept-names.js';
import { tellLate, type Note } from './late-leaves.js';

/** How long what ran inside may take to end when its front has been killed; its launcher kills it at once. */
const ENDS_MS = 10_000;

export interface KeptNames {
  ruleset: Ruleset;
  before: LeafRecord;
  by: string;
  untold?: readonly string[] | undefined;
  /** Process of the launcher. */
  launcher?: number | undefined;
}

interface Content {
  ruleset: Ruleset;
  leaves: string;
  by: string;
  untold: readonly string[];
  /** Who holds the session's processes; null: nobody that is known. */
  launcher: { pid: number; start: string } | null;
}

/**
 * Keeps it until the answer is called. Not flushed: after a power cut there is nothing that could still be told in time. Throws the system's
 * error.
 */
export function keepNames(home: string, session: string, kept: KeptNames): () => void {
  const { ruleset, before, by, untold = [], launcher } = kept;
  const path = pathOf(home, 'l', session);
  const facts = launcher === undefined ? undefined : processFacts(launcher);
  const content: Content = {
    ...{ ruleset, by, untold },
    leaves: packLeaves(before, ruleset),
    launcher: facts === undefined ? null : { pid: facts.pid, start: facts.start },
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify(content), { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return () => rmSync(path, { force: true });
}

/**
 * Compares what a session has kept that was killed, once nothing of it runs: records what differs, and leaves what a person is to be told for
 * whoever speaks to one next. By who holds the lock of the session's door, which nobody else has then. Throws what recording throws.
 */
export async function compareKept(home: string, session: string, note: Note): Promise<void> {
  const path = pathOf(home, 'l', session);
  const { ruleset, leaves, by, untold, launcher } = JSON.parse(readFileSync(path, 'utf8')) as Content;
  const until = Date.now() + ENDS_MS;
  while (launcher !== null && processFacts(launcher.pid)?.start === launcher.start && Date.now() < until)
    await delay(20);
  const news: News = { session, lines: [] };
  const tell = (line: string): void => {
    news.lines.push(line);
    writeFileSync(pathOf(home, 'n', session), JSON.stringify(news), { mode: 0o600 });
  };
  await tellLate(ruleset, unpackLeaves(leaves, ruleset), note, tell, { by, untold });
  rmSync(path, { force: true });
}
