// What a session that learns was seen to do, and what is asked of the disk about it.
import { closeSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import type { Front, Learned, Observed } from '@nd7/confine';
import type { EgressDecision } from '@nd7/egress';
import type { LearnFacts, LearnInput, RefusedName, Ruleset, Seen, SeenHost } from '@nd7/policy';
import { factsOf } from '../policy/facts.js';

/** So many paths are kept; the supervisor tells a few less. */
const MOST = 200_000;

/** Collects, and decides nothing. */
export class Learning {
  readonly #seen: Seen[] = [];
  readonly #hosts = new Map<string, SeenHost>();
  readonly #refused = new Map<string, RefusedName>();
  #ports: readonly number[] = [];
  #isCut = false;

  /** `moved`: called whenever more is known. */
  constructor(
    private readonly ruleset: Ruleset,
    private readonly moved: (paths: number, hosts: number) => void,
  ) {}

  /** A front that hears what another hears, and what is learned besides. */
  beside(front: Front): Front {
    return {
      judge: (question) => front.judge(question),
      heard: (event) => {
        if (event.verdict === 'refused') this.#refuse(event.path, event.rule);
        front.heard(event);
      },
      dropped: (count) => front.dropped?.(count),
      learned: (seen) => this.#take(seen),
    };
  }

  answered({ via, host, port, verdict, reason }: EgressDecision): void {
    // Those that stand for a credential's host belong to the policy that has the credential.
    if (via === 'endpoint') return;
    const seen = { host, port, allowed: verdict === 'allow', reason };
    this.#hosts.set(JSON.stringify(seen), seen);
    this.#tell();
  }

  listensOn(ports: readonly number[]): void {
    this.#ports = ports;
  }

  /** There was more than could be kept: what is learned of it does not cover the whole. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get found(): Pick<LearnInput, 'seen' | 'hosts' | 'refused' | 'ownPorts'> {
    return {
      seen: this.#seen,
      hosts: [...this.#hosts.values()],
      refused: [...this.#refused.values()],
      ownPorts: this.#ports,
    };
  }

  #take(seen: Learned | null): void {
    if (seen === null || this.#seen.length === MOST) {
      this.#isCut = true;
      return;
    }
    this.#seen.push({ what: seen.what, path: seen.path, said: seen.said, program: seen.program });
    this.#tell();
  }

  #refuse(path: string, rule: Observed['rule']): void {
    if (rule?.kind !== 'leaf') return;
    const because = this.ruleset.leaves[rule.index]?.because;
    if (because !== undefined) this.#refused.set(path, { path, because: `a protected name: ${because}` });
  }

  #tell(): void {
    this.moved(this.#seen.length, this.#hosts.size);
  }
}

/** The first line of a script is read this far by the kernel. */
const FIRST_LINE = 256;

/** The disk as it is outside, each path asked once. */
export function learnFacts(): LearnFacts {
  const kinds = new Map<string, ReturnType<LearnFacts['kindOf']>>();
  const links = new Map<string, boolean>();
  const isLink = (path: string): boolean => {
    const known = links.get(path) ?? attempt(() => lstatSync(path).isSymbolicLink()) === true;
    links.set(path, known);
    return known;
  };
  const { tracked } = factsOf();
  return {
    kindOf: (path) => {
      if (!kinds.has(path)) kinds.set(path, kindOf(path));
      return kinds.get(path);
    },
    linksOn: (path) => {
      const parts = path.split('/').slice(1);
      return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`).filter(isLink);
    },
    interpreterOf,
    tracked: (path) => tracked?.(path) === true,
  };
}

function kindOf(path: string): ReturnType<LearnFacts['kindOf']> {
  const stat = attempt(() => statSync(path));
  if (stat === undefined) return undefined;
  return stat.isDirectory() ? 'folder' : stat.isSocket() ? 'socket' : 'file';
}

function interpreterOf(path: string): string | undefined {
  if (attempt(() => statSync(path).isFile()) !== true) return undefined;
  const fd = attempt(() => openSync(path, 'r'));
  if (fd === undefined) return undefined;
  try {
    const bytes = Buffer.alloc(FIRST_LINE);
    const first = bytes.toString('utf8', 0, readSync(fd, bytes)).split('\n', 1)[0] ?? '';
    return /^#![ \t]*(\/[^ \t]+)/.exec(first)?.[1];
  } finally {
    closeSync(fd);
  }
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
