import { getNodeValue, parseTree, printParseErrorCode } from 'jsonc-parser';
import type { Node, ParseError } from 'jsonc-parser';
import { blake3Hex } from '@nd7/blake3';
import { utf8 } from '@nd7/entry';
import { PolicyDocument } from './document.js';
import { PolicyError } from './failure.js';

/** A policy with the lines its values stand on. */
export interface PolicyFile {
  /** How it is called: `user`, `project`, `team`, or the name in `extends`. */
  name: string;
  /** Where it was read; null for what nd7 brings. */
  file: string | null;
  /** BLAKE3 of the bytes, by which a person trusts a project's policy; null for what nd7 brings. */
  hash: string | null;
  document: PolicyDocument;
  /** Line of the value at a path of keys and indices (`files`, `read`, `allow`, 0), from 1; null where it has none. */
  lineOf: (path: readonly (string | number)[]) => number | null;
}

/** Larger than any policy a person reads; bounds the work on a project's file. */
const MAX_TEXT = 64 * 1024;
/** A policy is five deep; the parser recurses. */
const MAX_DEPTH = 32;

/**
 * Reads a policy file: JSON with comments and trailing commas, no key twice, no key that the language does not have. Throws `PolicyError`
 * with file and line. `text` is the file's bytes as UTF-8.
 */
export function readPolicy(text: string, file: string, name: string): PolicyFile {
  const root = parse(text, file);
  const lineAt = lines(text);
  const result = PolicyDocument.safeParse(getNodeValue(root), { reportInput: false });
  if (!result.success) {
    const issue = innermost(result.error.issues);
    const node = nodeAt(root, issue.path);
    throw new PolicyError(
      'bad-policy',
      `${pathText(issue.path)}: ${issue.message}`,
      mendOf(issue),
      file,
      lineAt(node.offset),
    );
  }
  return {
    name,
    file,
    hash: blake3Hex(utf8(text)),
    document: result.data,
    lineOf: (path) => lineAt(nodeAt(root, path).offset),
  };
}

/** A policy that nd7 brings: checked like any other, without file or lines. */
export function builtinPolicy(name: string, document: PolicyDocument): PolicyFile {
  return { name, file: null, hash: null, document, lineOf: () => null };
}

function parse(text: string, file: string): Node {
  if (text.length > MAX_TEXT)
    throw new PolicyError(
      'bad-json',
      `the file has ${text.length} characters`,
      `A policy has at most ${MAX_TEXT}.`,
      file,
      null,
    );
  const lineAt = lines(text);
  const deep = tooDeep(text);
  if (deep >= 0)
    throw new PolicyError(
      'bad-json',
      'braces and brackets are nested too deeply',
      `At most ${MAX_DEPTH} of them.`,
      file,
      lineAt(deep),
    );
  const errors: ParseError[] = [];
  const root = parseTree(text.startsWith('\uFEFF') ? ` ${text.slice(1)}` : text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (root === undefined || error !== undefined)
    throw new PolicyError(
      'bad-json',
      error === undefined ? 'the file is empty' : `the file is not JSON: ${printParseErrorCode(error.error)}`,
      error === undefined
        ? 'An empty policy is {"nd7": 1}.'
        : 'JSON with // and /* */ comments and trailing commas is taken.',
      file,
      error === undefined ? 1 : lineAt(error.offset),
    );
  refuseDoubledKeys(root, file, lineAt);
  return root;
}

/** Where the text opens more braces and brackets than a policy can have, outside strings and comments; -1 where it never does. */
function tooDeep(text: string): number {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') {
      for (i++; i < text.length && text[i] !== '"' && !isLineEnd(text[i]); i++) if (text[i] === '\\') i++;
    } else if (c === '/' && text[i + 1] === '/') {
      while (i < text.length && !isLineEnd(text[i])) i++;
    } else if (c === '/' && text[i + 1] === '*') {
      const end = text.indexOf('*/', i + 2);
      i = end < 0 ? text.length : end + 1;
    } else if (c === '{' || c === '[') {
      if (++depth > MAX_DEPTH) return i;
    } else if (c === '}' || c === ']') depth--;
  }
  return -1;
}

/** Where the parser ends a comment, and a string that nobody closed. */
function isLineEnd(c: string | undefined): boolean {
  return c === '\n' || c === '\r';
}

/** A key twice means two things to two readers, so it means nothing here. */
function refuseDoubledKeys(root: Node, file: string, lineAt: (offset: number) => number): void {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const seen = new Set<unknown>();
    for (const child of node.children ?? []) {
      open.push(child);
      if (child.type !== 'property') continue;
      const key = child.children?.[0]?.value as unknown;
      if (seen.has(key))
        throw new PolicyError(
          'bad-json',
          `the key "${String(key)}" stands twice`,
          'Put the two together.',
          file,
          lineAt(child.offset),
        );
      // Reading would give it to the object's prototype instead of to the object.
      if (key === '__proto__')
        throw new PolicyError(
          'bad-json',
          'the key "__proto__" has no meaning',
          'Take it out.',
          file,
          lineAt(child.offset),
        );
      seen.add(key);
    }
  }
}

/** Line of an offset, from 1, by binary search. */
function lines(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

/** The node at a path, or the nearest one above it that is there; of a member, its key. */
function nodeAt(root: Node, path: readonly PropertyKey[]): Node {
  let node = root;
  for (const step of path) {
    const next =
      node.type === 'array'
        ? node.children?.[Number(step)]
        : node.children?.find((member) => member.children?.[0]?.value === step)?.children?.[1];
    if (next === undefined) break;
    node = next;
  }
  return node;
}

interface Issue {
  code?: string | undefined;
  path: PropertyKey[];
  message: string;
  errors?: Issue[][];
  keys?: string[];
  values?: unknown[];
}

/** Of a union's complaints the one that got furthest: it says what the author meant. */
function innermost(issues: readonly unknown[], above: PropertyKey[] = []): Issue {
  const [first] = issues as Issue[];
  const issue = { ...(first as Issue), path: [...above, ...(first as Issue).path] };
  const branches = issue.errors?.filter((branch) => branch.length > 0) ?? [];
  const furthest = branches.filter(
    (branch) => branch[0]?.path.length !== 0 || branch[0]?.code === 'unrecognized_keys',
  )[0];
  return furthest === undefined ? issue : innermost(furthest, issue.path);
}

function pathText(path: readonly PropertyKey[]): string {
  return path.length === 0 ? 'the policy' : path.map(String).join('.');
}

function mendOf(issue: Issue): string {
  if (issue.code === 'unrecognized_keys')
    return 'docs/policy.md lists the fields; a misspelt one would protect nothing, so it is refused.';
  if (issue.path.at(-1) === 'nd7') return 'Begin the policy with "nd7": 1.';
  return 'docs/policy.md says what may stand there.';
}
