/** Nesting that no state file has; bounds the recursion below. */
const MAX_DEPTH = 64;

/**
 * Members of `.claude.json` that start programs, point elsewhere or give rights: at its top and in each of its `projects`. By their
 * meaning, so that what a new version adds is held too.
 */
const HELD =
  /mcp|hook|helper|permission|trust|allowed|approved|bypass|dangerous|command|^env$|^customApiKeyResponses$|statusLine|awsAuthRefresh|awsCredentialExport|external/i;

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/**
 * Compares the agent's state file before and after a write. `text` is what may be written: the new file with every held member as it was;
 * `held` names what is kept back for a person, as paths. Null where the new text is no JSON object: nothing of it may be written.
 */
export function compareClaudeState(before: string, after: string): { text: string; held: string[] } | null {
  const now = parseObject(after);
  if (now === null) return null;
  const was = parseObject(before) ?? {};
  const held: string[] = [];
  const top = keep(was, now, [], held);
  const [wereProjects, areProjects] = [was['projects'], now['projects']];
  if (isObject(areProjects)) {
    const old = isObject(wereProjects) ? wereProjects : {};
    top['projects'] = fromEntries(
      Object.entries(areProjects).map(([path, project]) => {
        const known = own(old, path);
        return [
          path,
          isObject(project) ? keep(isObject(known) ? known : {}, project, ['projects', path], held) : project,
        ];
      }),
    );
    // A project that is gone loses what the person said of it, which gives nothing.
  }
  return held.length === 0 ? { text: after, held } : { text: `${JSON.stringify(top, null, 2)}\n`, held: held.sort() };
}

/** The new object with held members as they were. */
function keep(was: JsonObject, now: JsonObject, path: readonly string[], held: string[]): JsonObject {
  const names = new Set([...Object.keys(now), ...Object.keys(was)]);
  const entries: [string, Json][] = [];
  for (const name of names) {
    const [old, value] = [own(was, name), own(now, name)];
    // A member that the client makes empty says nothing yet.
    const begins = old === undefined && isEmpty(value);
    if (HELD.test(name) && !begins && differ(old, value)) {
      held.push([...path, name].join('.'));
      if (old !== undefined) entries.push([name, old]);
    } else if (value !== undefined) entries.push([name, value]);
  }
  return fromEntries(entries);
}

function differ(old: Json | undefined, value: Json | undefined): boolean {
  return JSON.stringify(sorted(old)) !== JSON.stringify(sorted(value));
}

function isEmpty(value: Json | undefined): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === null || value === false || value === '' || value === 0;
}

function own(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Every name as an own member, `__proto__` too. */
function fromEntries(entries: readonly (readonly [string, Json])[]): JsonObject {
  return Object.fromEntries(entries);
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** With members in one order, so that only a change of content is a change. */
function sorted(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => sorted(item) as Json);
  if (!isObject(value)) return value;
  return fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key]) as Json]),
  );
}

function parseObject(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) && depthOf(value, 0) <= MAX_DEPTH ? value : null;
  } catch {
    return null;
  }
}

function depthOf(value: Json, above: number): number {
  if (above > MAX_DEPTH || typeof value !== 'object' || value === null) return above;
  return Object.values(value).reduce<number>((deepest, item) => Math.max(deepest, depthOf(item, above + 1)), above);
}
