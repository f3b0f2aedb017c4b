import { existsSync } from 'node:fs';
import { NO_OPINION, readHook } from '@nd7/hooks';
import type { HookReading } from '@nd7/hooks';
import { machineKey, openHome, openSession, readReceipts } from '@nd7/journal';
import type { Home, Journal, JournalDraft } from '@nd7/journal';
import { parseReceipt } from '@nd7/receipt';
import { systemClock, systemRandom } from '@nd7/signing';
import { VERSION } from '../cli/version.js';
import { readConfig } from './config.js';
import type { RecorderConfig } from './config.js';
import { draftMaker, recorderDraft, rememberSecrets } from './draft.js';
import { markCopy } from './duplicates.js';
import type { Answer } from './frames.js';
import { configFor, mayName, speakerInside } from './inside.js';
import type { Inside, Joined } from './inside.js';
import { markMissed } from './missed.js';
import { markClosed, markOpen, openMarks } from './open-marks.js';
import { speaker, unnamedSession } from './peer.js';
import type { Speaker } from './peer.js';
import { answerSilencing, answerUnpinned, answerUnrecorded } from './policy.js';
import { silencedBy } from './settings-watch.js';
import { startRecorder } from './start.js';

/** Many hooks may stand in line for one session's lock; whoever called this process gives it 20 s. */
const LOCK_WAIT_MS = 15_000;

export interface AloneRequest {
  home: string;
  agent: string;
  env: Record<string, string>;
  payload: Uint8Array;
  took: string;
  /** Start a recorder for the payloads to come. */
  startRecorder: boolean;
  /** The hook spoke from inside a confined session, whose front this process is. */
  from?: FromInside;
}

/** `joined` is told once of each chain that speaks from inside: which, and how far it is. */
export interface FromInside {
  inside: Inside;
  hasJoined(session: string): boolean;
  joined(one: Joined): Promise<void>;
}

/**
 * Records one payload without a recorder: the hook's own process appends it under the session's lock, durable. It cannot notice silence, or
 * a client that goes away; the recorder that is started beside it can. Never throws: what fails becomes the policy's answer.
 */
export async function recordAlone(request: AloneRequest): Promise<Answer> {
  if (request.startRecorder) startRecorder(request.home);
  const reading = readHook(request.payload, { agent: request.agent, env: request.env, took: request.took });
  const claimed = reading.adapter.env.pid === undefined ? undefined : request.env[reading.adapter.env.pid];
  const { inside } = request.from ?? {};
  const uid = process.geteuid?.();
  const who = inside === undefined ? speaker(process.pid, uid, claimed) : speakerInside(inside, uid, claimed);
  const config = configFor(readConfig(request.home), inside);
  try {
    const home = openHome(request.home);
    const journal = await openFor(home, reading, who, request);
    try {
      await join(journal, reading.adapter.agent, request.from);
      return await append(home, journal, reading, who, config);
    } finally {
      await journal.close();
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    markMissed(request.home, {
      at: systemClock.now(),
      agent: reading.adapter.agent,
      session: reading.session,
      event: reading.facts.event,
      reason: (error as { code?: string }).code ?? 'error',
    });
    const answer = answerUnrecorded(reading, config, error instanceof Error ? error : new Error(text));
    if (answer !== NO_OPINION) return answer;
    return { exit: 0, stdout: '', stderr: `nd7: not recorded: ${text}\n` };
  }
}

async function openFor(home: Home, reading: HookReading, who: Speaker, request: AloneRequest): Promise<Journal> {
  const { adapter, facts } = reading;
  const { env, from } = request;
  const project = adapter.env.project === undefined ? undefined : env[adapter.env.project];
  const start = {
    agent: adapter.agent,
    ...(facts.cwd === undefined ? {} : { cwd: facts.cwd }),
    ...(project === undefined ? {} : { project }),
    nd7: VERSION,
  };
  const options = {
    clock: systemClock,
    random: systemRandom,
    machine: machineKey(home),
    start,
    lockWaitMs: LOCK_WAIT_MS,
  };
  const unnamed = unnamedSession(adapter.agent, who.client);
  let asked = reading.session ?? unnamed;
  const open = openMarks(home.root).find(({ session }) => session === asked);
  if (from !== undefined && !mayName(asked, from.inside, open?.client)) {
    Object.assign(reading.marks, { session_claimed: asked, session_from: 'recorder' });
    asked = unnamed;
  }
  try {
    return await openSession(home, asked, options);
  } catch (error) {
    if ((error as { code?: string }).code !== 'session-case' || asked === unnamed) throw error;
    Object.assign(reading.marks, { session_claimed: asked, session_from: 'recorder' });
    return openSession(home, unnamed, options);
  }
}

async function join(journal: Journal, agent: string, from: FromInside | undefined): Promise<void> {
  if (from === undefined || from.hasJoined(journal.session)) return;
  const { run, entries, head } = from.inside;
  await journal.append([recorderDraft(systemClock.now(), 'session.confined', { run, entries, head })], { sync: true });
  await from.joined({ session: journal.session, agent, entries: journal.entries, head: journal.head });
}

async function append(
  home: Home,
  journal: Journal,
  reading: HookReading,
  who: Speaker,
  config: RecorderConfig,
): Promise<Answer> {
  const took = systemClock.now();
  const make = draftMaker({
    memory: await rememberSecrets(home, journal.session),
    rules: () => config.detach,
    random: systemRandom,
  });
  const drafts = [make(reading, { ...who.peer, ...reading.marks, alone: true }, took)];
  const ending = reading.kind === 'session.end';
  if (ending) drafts.push(recorderDraft(took, 'session.end', { reason: 'client ended', by: 'hook' }));
  let answer: Answer = NO_OPINION;
  const { event, filePath } = reading.facts;
  const silencing = event === 'ConfigChange' && filePath !== undefined ? silencedBy(filePath, home.root) : undefined;
  if (silencing !== undefined) {
    const decided = answerSilencing(reading, config, silencing);
    drafts.push(recorderDraft(took, 'alarm', decided.alarm));
    answer = decided.answer;
  } else if (config.pin === 'required' && reading.kind === 'tool.before' && !isPinned(home, journal.session)) {
    answer = answerUnpinned(reading, existsSync(home.vaultFile));
  }
  // Another hook may be saying the same at this moment: under the lock one of the two comes second.
  const amend = ([first, ...rest]: readonly JournalDraft[]) =>
    first === undefined ? [] : [markCopy(home, journal.session, first), ...rest];
  await journal.append(drafts, { sync: true, amend });
  if (ending) {
    await journal.seal();
    markClosed(home.root, journal.asked);
  } else
    markOpen(home.root, {
      session: journal.asked,
      agent: reading.adapter.agent,
      client: who.client,
      isNamed: who.isNamed,
    });
  return answer;
}

/** Whether a receipt kept here speaks of entry 0. It was verified before it was kept. */
function isPinned(home: Home, session: string): boolean {
  return readReceipts(home, session).some(({ text }) => {
    const statement = parseReceipt(text)?.statement;
    return statement?.type === 'head' && statement.session === session && statement.from === 0;
  });
}
