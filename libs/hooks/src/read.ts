import { compactJson, isSessionId, member, parseStrictJson, stringValue } from '@nd7/entry';
import type { JsonFault, JsonNode } from '@nd7/entry';
import type { Adapter, HookAnswer, HookFacts, PayloadView } from './adapter.js';
import { claudeCode } from './claude-code.js';
import { codex } from './codex.js';
import { detectAgent } from './detect.js';

const ADAPTERS: ReadonlyMap<string, Adapter> = new Map([claudeCode, codex].map((adapter) => [adapter.agent, adapter]));

/** Payloads nested deeper than this are kept as raw bytes: no client sends them, and a tree of millions of nodes costs memory. */
const MAX_PAYLOAD_DEPTH = 4096;
/** Longest claimed text that is repeated in a mark; the payload itself holds it whole. */
const MAX_MARK = 256;

/** Where a payload came from, as far as the hook process can tell. */
export interface HookOrigin {
  /** `--agent` of the registered command. */
  agent: string;
  /** Environment variables of the hook process that an adapter names. */
  env: Readonly<Record<string, string | undefined>>;
  /** How reading stdin ended; anything but `complete` and `eof` means the payload may be a part. */
  took?: string;
}

/** One payload, read. Nothing is refused: what is wrong with it stands in `marks`. */
export interface HookReading {
  adapter: Adapter;
  /** `intent:<agent>` */
  source: string;
  kind: string;
  facts: HookFacts;
  /** The session the payload belongs to, undefined when neither payload nor environment names a usable one. */
  session: string | undefined;
  /** Exact JSON text of one object, white space between tokens gone; of an unreadable payload, its bytes as base64. */
  data: string;
  /** What was wrong and what the recorder noticed, for the entry's `peer` member. */
  marks: Record<string, unknown>;
  /** False when `data` wraps raw bytes. */
  readable: boolean;
  /** To be on disk before the client gets its answer. */
  decisive: boolean;
  /** The answer that refuses what the payload announces, undefined where the client cannot be refused. */
  deny(reason: string): HookAnswer | undefined;
}

/** The adapter for an agent name; an agent nd7 has no adapter for is still recorded, every payload as kind `event`. */
export function adapterFor(agent: string): Adapter {
  const known = ADAPTERS.get(agent);
  if (known !== undefined) return known;
  const producer = /^[a-z0-9][a-z0-9.-]{0,63}$/.test(agent) ? agent : 'unknown';
  return {
    ...claudeCode,
    agent: producer,
    env: {},
    sessionKeys: ['session_id', 'sessionId', 'conversation_id', 'conversationId'],
    kindOf: () => 'event',
    isDecisive: () => false,
    deny: () => undefined,
  };
}

/** A view of a parsed payload. `bytes` are the bytes the node's offsets point into. */
export function payloadView(bytes: Uint8Array, root: JsonNode): PayloadView {
  return {
    root,
    text: (...path) => {
      let node: JsonNode | undefined = root;
      for (const key of path) node = member(node, key);
      return node?.type === 'string' ? stringValue(bytes, node) : undefined;
    },
    texts: (list, key) =>
      (member(root, list)?.items ?? [])
        .map((item) => stringValue(bytes, member(item, key)))
        .filter((value) => value !== undefined),
    has: (key) => member(root, key) !== undefined,
  };
}

/** Reads one hook payload. Never throws, whatever the bytes are. */
export function readHook(payload: Uint8Array, origin: HookOrigin): HookReading {
  const adapter = adapterFor(origin.agent);
  const marks: Record<string, unknown> = {};
  if (adapter.agent !== origin.agent) marks['agent_claimed'] = cut(origin.agent);
  if (origin.took !== undefined && origin.took !== 'complete' && origin.took !== 'eof')
    marks['stdin'] = cut(origin.took);
  const bytes = withoutBom(payload);
  if (bytes.length !== payload.length) marks['bom'] = true;
  const parsed = parseStrictJson(bytes, { maxDepth: MAX_PAYLOAD_DEPTH, object: true });
  const envSession = adapter.env.session === undefined ? undefined : origin.env[adapter.env.session];
  if (!parsed.ok) return unreadable(payload, adapter, marks, parsed, envSession);

  const view = payloadView(bytes, parsed.root);
  const facts = adapter.facts(view);
  const detected = detectAgent(view);
  if (detected !== undefined && detected !== adapter.agent)
    Object.assign(marks, { agent_claimed: cut(origin.agent), agent_detected: detected });
  const claimed = sessionOf(view, adapter, detected);
  return {
    adapter,
    source: `intent:${adapter.agent}`,
    kind: adapter.kindOf(facts),
    facts,
    session: chooseSession(claimed, envSession, marks),
    data: compactJson(bytes, parsed.root),
    marks,
    readable: true,
    decisive: adapter.isDecisive(facts),
    deny: (reason) => adapter.deny(facts, reason),
  };
}

function unreadable(
  payload: Uint8Array,
  adapter: Adapter,
  marks: Record<string, unknown>,
  fault: { reason: JsonFault; at: number },
  envSession: string | undefined,
): HookReading {
  const problem = { reason: fault.reason, at: fault.at, bytes: payload.length };
  return {
    adapter,
    source: `intent:${adapter.agent}`,
    kind: 'event',
    facts: {},
    session: chooseSession(undefined, envSession, marks),
    data: JSON.stringify({ unreadable: problem, raw_base64: Buffer.from(payload).toString('base64') }),
    marks: { ...marks, problem: fault.reason },
    readable: false,
    decisive: true, // it may announce a tool call …
    deny: (reason) => ({ exit: 2, stdout: '', stderr: reason }), // … and exit 2 refuses one whatever its name
  };
}

/** A foreign payload names its session in its own way: the detected agent's members are tried after the claimed one's. */
function sessionOf(view: PayloadView, adapter: Adapter, detected: string | undefined): string | undefined {
  const foreign =
    detected !== undefined && detected !== adapter.agent
      ? ['session_id', 'sessionId', 'conversation_id', 'conversationId']
      : [];
  for (const key of [...adapter.sessionKeys, ...foreign]) {
    const value = view.text(key);
    if (value !== undefined) return value;
  }
  return undefined;
}

function chooseSession(
  claimed: string | undefined,
  env: string | undefined,
  marks: Record<string, unknown>,
): string | undefined {
  const usableEnv = env !== undefined && isSessionId(env) ? env : undefined;
  if (claimed !== undefined && isSessionId(claimed)) {
    if (usableEnv !== undefined && usableEnv !== claimed) marks['session_env'] = usableEnv;
    return claimed;
  }
  if (claimed !== undefined) marks['session_claimed'] = cut(claimed);
  marks['session_from'] = usableEnv === undefined ? 'recorder' : 'environment';
  return usableEnv;
}

function withoutBom(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** A mark is bounded; the payload itself holds the text whole. */
function cut(text: string): string {
  return text.slice(0, MAX_MARK);
}
