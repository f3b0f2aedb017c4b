import { blake3Hex } from '@nd7/blake3';
import { MAX_DEPTH, MAX_LINE, parseStrictJson, utf8, type Detached, type Random } from '@nd7/entry';
import { envScopes } from './env-file.js';
import { DetachError } from './failure.js';
import type { SecretMemory } from './memory.js';
import { Pass, type Taken } from './pass.js';

/** What a policy adds to the built-in rules. Absent and empty mean the same: nothing. */
export interface DetachRules {
  /** JSON pointers into the payload whose values are held back; `*` stands for any one key or index: `/tool_input/env/*`. */
  pointers?: readonly string[];
  /** Texts that are held back wherever they stand: literal, or with `*` at the end for the rest of the word. */
  patterns?: readonly string[];
}

export interface DetachOptions {
  /** Values of more bytes than this as JSON are detached. Default 65,536. */
  limitBytes?: number;
  rules?: DetachRules;
  random: Random;
  /** The secrets the session has shown so far; this call adds to it. */
  memory: SecretMemory;
}

export interface DetachResult {
  /** The payload as it stands in the entry: no white space between tokens, `null` where a value is detached, all else byte for byte. */
  data: string;
  detached: Detached[];
  /** Salt and value of each, and the hash that names it, in the order of `detached`. */
  blobs: { hash: string; bytes: Uint8Array }[];
}

const LIMIT = 65_536;
/** `data` and `detached` of a line together; the rest is for prefix, time, source, kind and peer. */
const BUDGET = MAX_LINE - 8_192;
/** Containers of `data` may nest so deep: the entry itself is one more. */
const DEEPEST = MAX_DEPTH - 1;
const SALT = 32;

/**
 * Takes out of a payload what the log may not or should not hold (docs/format.md, "Detached values"): values over the limit, deeper than a line may
 * nest, secret by rule, or held back by policy. What remains fits a line of 1 MiB together with `detached`. Where not even that can be (a payload of
 * a hundred thousand members), or where a key of the payload itself is secret, all of it stands as one detached value at `/payload`.
 *
 * Cost is linear in the payload, and no tree of it is built.
 *
 * @param dataText the payload as it was said: the JSON text of one object
 * @throws DetachError where it is none; the payload is then recorded as a string
 */
export function detachValues(dataText: string, options: DetachOptions): DetachResult {
  const scopes = envScopes(dataText);
  const settings = {
    scopes,
    limit: options.limitBytes ?? LIMIT,
    budget: BUDGET,
    deepest: DEEPEST,
    patterns: options.rules?.patterns ?? [],
    pointers: (options.rules?.pointers ?? []).filter((p) => p.startsWith('/')).map((p) => p.slice(1).split('/')),
    memory: options.memory,
  };
  const known = options.memory.size;
  let kept = new Pass(dataText, settings).run();
  // A secret that is known by its name further down may stand without a name further up: once more, with what is known now.
  if (options.memory.size > known) kept = new Pass(dataText, settings).run();

  const parsed = parseStrictJson(utf8(kept.data), { object: true, maxDepth: DEEPEST });
  if (!parsed.ok) {
    const code = parsed.reason === 'duplicate-key' ? 'duplicate-key' : 'bad-json';
    throw new DetachError(
      code,
      `not a payload that a log can hold: ${parsed.reason} at byte ${parsed.at} of what would stay`,
    );
  }
  const detached: Detached[] = [];
  const blobs: DetachResult['blobs'] = [];
  for (const taken of kept.taken) {
    const bytes = salted(options.random(SALT), utf8(dataText.slice(taken.start, taken.end)));
    const hash = blake3Hex(bytes);
    blobs.push({ hash, bytes });
    detached.push(element(taken, hash));
  }
  return { data: kept.data, detached, blobs };
}

function element({ at, bytes, why, shown }: Taken & { at: string }, hash: string): Detached {
  const open = why === 'size' || why === 'depth';
  return { at, blake3: hash, ...(open && { bytes }), why, ...(shown !== undefined && { shown }) };
}

function salted(salt: Uint8Array, value: Uint8Array): Uint8Array {
  const both = new Uint8Array(salt.length + value.length);
  both.set(salt);
  both.set(value, salt.length);
  return both;
}
