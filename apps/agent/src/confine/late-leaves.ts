// Protected names in tier T3, where nobody refuses that they are made and changed: what differs is recorded and told when the session has ended.
import { compareLeaves, recordLeaves, type LeafChange, type LeafRecord } from '@nd7/confine';
import { isWithin, type Ruleset } from '@nd7/policy';
import { judgeChange } from './judge.js';

/** So many are recorded one by one and told of; the others are counted. */
const MOST_ENTRIES = 1_000;
const MOST_TOLD = 20;
const SOURCE = 'decision:names';

export type Note = (kind: string, data: Record<string, unknown>, what: string, source: string) => Promise<void>;

/** What became of one protected name. */
export type Late = LeafChange & {
  /** `late`: it would have been refused. `allow`: its mediator lets it through. `record`: it is recorded where it is seen, and not refused. */
  verdict: 'late' | 'allow' | 'record';
  change: 'made' | 'changed' | 'removed';
  /** Of a mediated name: what changed, and what of it runs something, by key. */
  keys: { changed: string[]; held: string[] } | undefined;
};

/**
 * Compares protected names with what they held before the start, tells a person what differs and records it. It is told first: a session can
 * have filled the disk. What differs below `untold` is only recorded. Throws what recording throws.
 */
export async function tellLate(
  ruleset: Ruleset,
  before: LeafRecord,
  note: Note,
  tell: (line: string) => void,
  { by = 'tier T3', untold = [] }: { by?: string; untold?: readonly string[] | undefined } = {},
): Promise<void> {
  const after = recordLeaves(ruleset);
  const all = compareLeaves(before, after).map((change) => judged(ruleset, change));
  const count = (verdict: Late['verdict']): number => all.filter((one) => one.verdict === verdict).length;
  const compared = {
    names: after.entries.size,
    late: count('late'),
    allowed: count('allow'),
    recorded: count('record'),
    not_looked_at: before.unseen + after.unseen,
    closed: after.closed.size,
  };
  const shut = [...after.closed].filter((path) => !before.closed.has(path));
  const news = all.filter(({ path }) => !untold.some((folder) => isWithin(path, folder)));
  for (const line of told(news, compared.not_looked_at, shut, by)) tell(line);
  await note('file.compared', compared, 'the comparison of protected names', SOURCE);
  for (const one of all.slice(0, MOST_ENTRIES)) await note('file.late', entry(one), 'a protected name', SOURCE);
}

function judged(ruleset: Ruleset, change: LeafChange): Late {
  const { path, leaf, was, is, contents } = change;
  const kind = was === null ? 'made' : is === null ? 'removed' : 'changed';
  if (leaf.treatment === 'record') return { ...change, change: kind, verdict: 'record', keys: undefined };
  if (contents === undefined || is?.kind !== 'file' || (was !== null && was.kind !== 'file'))
    return { ...change, change: kind, verdict: 'late', keys: undefined };
  const { allow, changed, held } = judgeChange(ruleset, { leaf, path, ...contents });
  const isHarmless = allow && held.length === 0 && (was === null || was.mode === is.mode);
  return { ...change, change: kind, verdict: isHarmless ? 'allow' : 'late', keys: { changed, held } };
}

function entry({ path, leaf, was, is, verdict, change, keys }: Late): Record<string, unknown> {
  const { treatment, because, source } = leaf;
  return { verdict, change, path, was, is, treatment, because, source, ...keys };
}

/** For the person: never left out, since what stands there may run as soon as somebody works in the folder. */
function told(all: readonly Late[], unseen: number, shut: readonly string[], by: string): string[] {
  const late = all.filter(({ verdict }) => verdict === 'late');
  const lines = late.slice(0, MOST_TOLD).map(({ path, change, leaf, keys }) => {
    const held = keys === undefined || keys.held.length === 0 ? '' : ` (${keys.held.slice(0, 5).join(', ')})`;
    return `  ${change} ${path}${held}: ${leaf.because}`;
  });
  const more = late.length - lines.length;
  return [
    ...(late.length === 0
      ? []
      : [
          `the session changed ${late.length} protected name${late.length === 1 ? '' : 's'}, which ${by} does not refuse. What stands there may run outside later: look at it before you work here`,
          ...lines,
        ]),
    ...(more > 0 ? [`  and ${more} more: nd7 show`] : []),
    ...shut
      .slice(0, MOST_TOLD)
      .map((path) => `  shut ${path}: it cannot be looked into any more, and protected names in it can be used`),
    ...(shut.length > MOST_TOLD ? [`  and ${shut.length - MOST_TOLD} more that cannot be looked into`] : []),
    ...(unseen > 0 ? [`${unseen} protected names or folders were too many to be looked at`] : []),
  ];
}
