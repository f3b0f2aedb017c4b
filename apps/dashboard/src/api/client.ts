import {
  Incident,
  IncidentList,
  MachineList,
  Me,
  pathOf,
  ProblemDocument,
  type RouteName,
  SessionList,
  SessionPage,
} from '@nd7/vault-api';
import type { IncidentListQuery, SessionListQuery } from '@nd7/vault-api';

/** Why an answer of the vault cannot be used. */
export type ApiCode =
  | 'signed-out' // no reader session, or it ended
  | 'not-found'
  | 'refused' // the vault answered with a problem
  | 'unreachable' // nothing answered
  | 'not-understood'; // something answered that is not of the contract

/** An answer of the vault that is none. The message says what and, where there is a way, how to mend it. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ApiCode;
  readonly status: number | undefined;

  constructor(code: ApiCode, message: string, status?: number) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Tells, by an event `401`, that the vault took a request for nobody's, whichever part of the page had made it; that for the reader tells itself. */
export const signedOut = new EventTarget();

interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false };
}

async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const answer = await fetch(path, { credentials: 'same-origin', ...options }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError('unreachable', 'The vault did not answer. Is it running, and is this page from its address?');
  });
  if (answer.ok) return answer;
  const problem = ProblemDocument.safeParse(await answer.json().catch(() => undefined));
  const words = problem.success
    ? sentence(problem.data.detail || problem.data.title)
    : `The vault answered ${String(answer.status)}.`;
  if (answer.status === 401) {
    if (path !== pathOf('me')) signedOut.dispatchEvent(new Event('401'));
    throw new ApiError('signed-out', 'Not signed in, or the sign-in has ended.', 401);
  }
  if (answer.status === 404) throw new ApiError('not-found', words, 404);
  const wait = answer.headers.get('retry-after');
  throw new ApiError('refused', wait === null ? words : `${words} It asked to wait ${wait} s.`, answer.status);
}

/** What the vault says in passing, as a sentence of a page. */
function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}`;
}

async function json<T>(schema: Schema<T>, path: string, options?: RequestInit): Promise<T> {
  const answer = await ask(path, options);
  const parsed = schema.safeParse(await answer.json().catch(() => undefined));
  if (!parsed.success)
    throw new ApiError(
      'not-understood',
      `What came from ${path} is not what this page understands. Are page and vault of one version?`,
    );
  return parsed.data;
}

/** A query as an address bears it; what is empty is left out. */
function searchOf(query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()}`;
}

const to = (route: RouteName, parameters: Record<string, string | number> = {}) => pathOf(route, parameters);

/** Where a session is: never by its id alone, because the agent's side chooses ids. */
export interface SessionAddress {
  machine: string;
  session: string;
}

/** The vault's routes as the page uses them. Everything they answer is the vault's word until the worker has checked it. */
export const vault = {
  signIn: (token: string) =>
    json(Me, to('signIn'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    }),
  signOut: () => ask(to('signOut'), { method: 'POST' }),
  me: (signal?: AbortSignal) => json(Me, to('me'), init(signal)),
  machines: (signal?: AbortSignal) => json(MachineList, to('machines'), init(signal)),
  incidents: (query: Partial<IncidentListQuery>, signal?: AbortSignal) =>
    json(IncidentList, `${to('incidents')}${searchOf(query)}`, init(signal)),
  incident: (id: string, signal?: AbortSignal) => json(Incident, to('incident', { id }), init(signal)),
  sessions: (query: Partial<SessionListQuery>, signal?: AbortSignal) => {
    return json(SessionList, `${to('sessions')}${searchOf(query)}`, init(signal));
  },
  session: (at: SessionAddress, signal?: AbortSignal) => json(SessionPage, to('session', { ...at }), init(signal)),
  /** The bytes of a segment, as a stream. */
  body: (at: SessionAddress, from: number, signal?: AbortSignal) => ask(to('body', { ...at, from }), init(signal)),
  /** A segment's receipt, byte for byte; undefined while it is not published. */
  receipt: async (at: SessionAddress, from: number, signal?: AbortSignal): Promise<Uint8Array | undefined> => {
    try {
      return await bytesOf(await ask(to('segmentReceipt', { ...at, from }), init(signal)));
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not-found') return undefined;
      throw error;
    }
  },
  checkpoint: async (team: string, signal?: AbortSignal) =>
    (await ask(to('checkpoint', { team }), init(signal))).text(),
  /** A tile by its path as C2SP tlog-tiles has it, `tile/0/000.p/7`. */
  tile: async (team: string, path: string, signal?: AbortSignal) => {
    const answer = await ask(`/t/${encodeURIComponent(team)}/${path}`, init(signal));
    return bytesOf(answer);
  },
};

async function bytesOf(answer: Response): Promise<Uint8Array> {
  return new Uint8Array(await answer.arrayBuffer());
}

function init(signal: AbortSignal | undefined): RequestInit {
  return signal === undefined ? {} : { signal };
}
