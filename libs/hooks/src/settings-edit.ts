import { getNodeValue, parseTree, printParseErrorCode } from 'jsonc-parser';
import type { Node, ParseError } from 'jsonc-parser';
import { HooksError } from './errors.js';

/** An event of the client and the handler group to stand in its list, ready as JSON values. */
export interface Registration {
  event: string;
  group: { hooks: { type: 'command'; command: string; args: string[]; timeout: number }[] };
}

/** Tells nd7's own handlers from everybody else's, also those an older nd7 wrote. */
export type IsOurs = (handler: unknown) => boolean;

/** Insertion of `text` before the character at `at`, or removal of [at, to). Offsets are UTF-16 units of the whole text. */
interface Edit {
  at: number;
  to: number;
  text: string;
}

/**
 * Adds registrations to the text of a JSON settings file (comments and trailing commas allowed). Every character that was
 * there stays; an event at which one of ours already stands as wanted is left alone, one of ours that differs (another path,
 * another timeout) is replaced. An empty text is a new file.
 */
export function addRegistrations(text: string, wanted: readonly Registration[], isOurs: IsOurs, where: string): string {
  if (text.replace(/^\uFEFF/, '').trim() === '') text = `${text.startsWith('\uFEFF') ? '\uFEFF' : ''}{}\n`;
  const stale = staleEvents(groupsOf(parseSettings(text, where), where), wanted, isOurs);
  const cleaned =
    stale.size === 0
      ? text
      : removeWhere(
          text,
          (handler, event) => isOurs(handler) && stale.has(event),
          where,
          () => true,
        );
  return insertMissing(cleaned, wanted, isOurs, where);
}

/**
 * Removes our handlers, and the groups, lists and `hooks` object that this leaves empty, unless `original` (the text before
 * nd7 came) had them empty already.
 */
export function removeRegistrations(text: string, isOurs: IsOurs, where: string, original?: string): string {
  const had = original === undefined ? undefined : valueOf(original);
  const keep = (path: readonly string[]): boolean =>
    path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), had) !== undefined;
  return removeWhere(text, isOurs, where, keep);
}

/** Events at which one of our handlers stands, with the handlers themselves. */
export function findRegistrations(
  text: string,
  isOurs: IsOurs,
  where: string,
): { event: string; handler: Record<string, unknown> }[] {
  return groupsOf(parseSettings(text, where), where).flatMap(({ event, handlers }) =>
    handlers
      .map((node) => getNodeValue(node) as unknown)
      .filter((handler): handler is Record<string, unknown> => isRecord(handler) && isOurs(handler))
      .map((handler) => ({ event, handler })),
  );
}

/** The value of a settings text as its client reads it, undefined when it is not JSON. Broken text is no error here. */
export function valueOf(text: string): unknown {
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true });
  return errors.length > 0 || root === undefined ? undefined : (getNodeValue(root) as unknown);
}

/** Events at which one of ours stands that is not wanted so: another command, a matcher, twice, or not at all. */
function staleEvents(groups: readonly Group[], wanted: readonly Registration[], isOurs: IsOurs): Set<string> {
  const events = new Set(groups.map(({ event }) => event));
  return new Set(
    [...events].filter((event) => {
      const ours = groups
        .filter((group) => group.event === event)
        .flatMap(({ group, handlers }) => handlers.map((node) => ({ group, handler: getNodeValue(node) as unknown })))
        .filter(({ handler }) => isOurs(handler));
      const [first] = ours;
      if (first === undefined) return false;
      const one = wanted.find((registration) => registration.event === event);
      const same = JSON.stringify(first.handler) === JSON.stringify(one?.group.hooks[0]);
      return ours.length > 1 || !same || !matchesAll(first.group);
    }),
  );
}

/** Puts in what is not there yet; all insertions are found in one reading of the text. */
function insertMissing(text: string, wanted: readonly Registration[], isOurs: IsOurs, where: string): string {
  const root = parseSettings(text, where);
  const present = new Set(
    groupsOf(root, where).flatMap(({ event, handlers }) =>
      handlers.some((node) => isOurs(getNodeValue(node))) ? [event] : [],
    ),
  );
  const missing = wanted.filter(({ event }) => !present.has(event));
  if (missing.length === 0) return text;
  const hooks = lastProperty(root, 'hooks');
  const style = styleOf(text, root);
  const fresh: string[] = [];
  const edits: Edit[] = [];
  for (const { event, group } of missing) {
    const list = hooks && lastProperty(hooks, event);
    if (list !== undefined) edits.push(...appendTo(text, list, [JSON.stringify(group)], style));
    else fresh.push(`${JSON.stringify(event)}: [${JSON.stringify(group)}]`);
  }
  if (hooks !== undefined && fresh.length > 0) edits.push(...appendTo(text, hooks, fresh, style));
  if (hooks === undefined) {
    const lead = style.inline ? '' : style.eol + style.unit.repeat(2);
    const tail = style.inline ? '' : style.eol + style.unit;
    edits.push(
      ...appendTo(text, root, [`"hooks": {${lead}${fresh.join(`,${lead === '' ? ' ' : lead}`)}${tail}}`], style),
    );
  }
  return apply(text, edits);
}

/** A matcher narrows what reaches the hook: ours has none. */
function matchesAll(group: Node | undefined): boolean {
  const value: unknown = group === undefined ? undefined : getNodeValue(group);
  return isRecord(value) && (value['matcher'] === undefined || value['matcher'] === '' || value['matcher'] === '*');
}

interface Group {
  event: string;
  group: Node;
  handlers: Node[];
}

function groupsOf(root: Node, where: string): Group[] {
  const hooks = lastProperty(root, 'hooks');
  if (hooks === undefined) return [];
  if (hooks.type !== 'object')
    throw new HooksError(
      'settings-shape',
      `${where}: "hooks" is not an object; mend it by hand, nd7 changes nothing there`,
    );
  return (hooks.children ?? []).flatMap((property) => {
    const [key, list] = property.children ?? [];
    const event = String(key?.value);
    if (list?.type !== 'array')
      throw new HooksError(
        'settings-shape',
        `${where}: "hooks"."${event}" is not a list; mend it by hand, nd7 changes nothing there`,
      );
    return (list.children ?? []).map((group) => {
      const handlers = group.type === 'object' ? lastProperty(group, 'hooks') : undefined;
      return { event, group, handlers: handlers?.type === 'array' ? (handlers.children ?? []) : [] };
    });
  });
}

function parseSettings(text: string, where: string): Node {
  const errors: ParseError[] = [];
  // A byte order mark is replaced by a blank of the same length, so that offsets stay those of the file.
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined || root === undefined) {
    const before = text.slice(0, first?.offset ?? 0).split(/\r\n|\r|\n/);
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new HooksError(
      'settings-broken',
      `${where} is not valid JSON (${place}: ${first ? printParseErrorCode(first.error) : 'empty'}); mend it first, nd7 changed nothing`,
    );
  }
  if (root.type !== 'object')
    throw new HooksError('settings-shape', `${where} holds no JSON object; mend it first, nd7 changed nothing`);
  return root;
}

/** The value of a property; of a key that stands twice, the last, which is the one its client reads. */
function lastProperty(node: Node, key: string): Node | undefined {
  const property = (node.children ?? []).findLast(
    (child) => child.type === 'property' && child.children?.[0]?.value === key,
  );
  return property?.children?.[1];
}

interface Style {
  eol: string;
  unit: string;
  /** The whole document stands on one line. */
  inline: boolean;
}

function styleOf(text: string, root: Node): Style {
  const body = text.slice(root.offset, root.offset + root.length);
  const first = root.children?.[0];
  const indent = first === undefined ? undefined : /[\r\n]([ \t]+)$/.exec(text.slice(0, first.offset))?.[1];
  return {
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    unit: indent ?? '  ',
    inline: first !== undefined && !/[\r\n]/.test(body),
  };
}

/** The edits that put items at the end of an object or array. Nothing but insertions. */
function appendTo(text: string, container: Node, items: readonly string[], style: Style): Edit[] {
  const open = container.offset + 1;
  const close = container.offset + container.length - 1;
  const last = container.children?.at(-1);
  const lastEnd = last === undefined ? open : last.offset + last.length;
  const { end, comma, lineComment } = trivia(text, lastEnd, close);
  const split = /[\r\n]/.test(text.slice(open, close));
  // A line for each event, also where somebody else's few stand on one line; a short list stays on its line, and so does one that holds a comment
  // only: its line end could not be told from the user's own when ours is removed.
  const isEmpty = last === undefined && end === open;
  const spread = !style.inline && (isEmpty || items.length > 1);
  const multiline = lineComment || split || spread;
  const lineStart = /[^\r\n]*$/.exec(text.slice(0, container.offset))?.[0] ?? '';
  const outer = /^[ \t]*/.exec(lineStart.replace(/^\uFEFF/, ''))?.[0] ?? '';
  const sibling = last === undefined ? undefined : /[\r\n]([ \t]*)$/.exec(text.slice(0, last.offset))?.[1];
  const lead = multiline ? style.eol + (sibling ?? outer + style.unit) : last === undefined ? '' : ' ';
  const tail = multiline && !/[\r\n]/.test(text.slice(end, close)) ? style.eol + outer : '';
  const body = items.join(multiline ? `,${lead}` : ', ');
  const edits: Edit[] = [];
  if (last !== undefined && comma === undefined) edits.push({ at: lastEnd, to: lastEnd, text: ',' });
  edits.push({ at: end, to: end, text: lead + body + (comma === undefined ? '' : ',') + tail });
  return edits;
}

/** What stands between the last item and the closing bracket: where it ends, a trailing comma, whether a line comment is in it. */
function trivia(
  text: string,
  from: number,
  to: number,
): { end: number; comma: number | undefined; lineComment: boolean } {
  let at = from;
  let end = from;
  let comma: number | undefined;
  let lineComment = false;
  while (at < to) {
    if (text.startsWith('//', at)) {
      const stop = /[\r\n]/.exec(text.slice(at, to))?.index;
      at = stop === undefined ? to : at + stop;
      lineComment = true;
      end = at;
    } else if (text.startsWith('/*', at)) {
      at = text.indexOf('*/', at) + 2;
      end = at;
    } else {
      if (text[at] === ',') comma ??= at;
      if (!/\s/.test(text[at] ?? '')) end = at + 1;
      at++;
    }
  }
  return { end, comma, lineComment };
}

/** Removes matching handlers one at a time; what becomes empty goes with them unless `keep` says it was there before. */
function removeWhere(
  text: string,
  match: (handler: unknown, event: string) => boolean,
  where: string,
  keep: (path: readonly string[]) => boolean,
): string {
  for (;;) {
    const root = parseSettings(text, where);
    const found = groupsOf(root, where).flatMap((group) =>
      group.handlers.filter((node) => match(getNodeValue(node), group.event)).map((node) => ({ ...group, node })),
    )[0];
    if (found === undefined) return text;
    text = apply(text, removal(text, doomed(found, keep)));
  }
}

/** The largest node that holds nothing but the handler to remove. */
function doomed(found: Group & { node: Node }, keep: (path: readonly string[]) => boolean): Node {
  if (found.handlers.length > 1) return found.node;
  const list = found.group.parent;
  const event = list?.parent;
  const hooks = event?.parent;
  if ((list?.children?.length ?? 0) > 1 || event === undefined || keep(['hooks', found.event])) return found.group;
  if ((hooks?.children?.length ?? 0) > 1 || hooks?.parent === undefined || keep(['hooks'])) return event;
  return hooks.parent;
}

/** Removes one item with the white space before it and one comma: the one after it, else the one before. */
function removal(text: string, node: Node): Edit[] {
  const siblings = node.parent?.children ?? [];
  const index = siblings.indexOf(node);
  const end = node.offset + node.length;
  const close = (node.parent?.offset ?? 0) + (node.parent?.length ?? 0) - 1;
  const next = siblings[index + 1];
  const previous = siblings[index - 1];
  const after = trivia(text, end, next?.offset ?? close).comma;
  const start = node.offset - (/\s*$/.exec(text.slice(0, node.offset))?.[0].length ?? 0);
  const edits: Edit[] = [{ at: start, to: end, text: '' }];
  if (after !== undefined) edits.push({ at: after, to: after + 1, text: '' });
  else if (previous !== undefined) {
    const before = trivia(text, previous.offset + previous.length, node.offset).comma;
    if (before !== undefined) edits.unshift({ at: before, to: before + 1, text: '' });
  } else if (/^\s*$/.test(text.slice((node.parent?.offset ?? 0) + 1, start)) && /^\s*$/.test(text.slice(end, close))) {
    edits[0] = { at: (node.parent?.offset ?? 0) + 1, to: close, text: '' }; // the only item: nothing is left between the brackets
  }
  return edits;
}

function apply(text: string, edits: readonly Edit[]): string {
  // From the end to the front; of two at one place, the later listed one first, so that it comes to stand behind.
  return [...edits]
    .reverse()
    .sort((a, b) => b.at - a.at)
    .reduce((current, edit) => current.slice(0, edit.at) + edit.text + current.slice(edit.to), text);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
