import type { PlanTier, Shown } from '@nd7/confine';
import type { CompileInput, Ruleset } from '@nd7/policy';
import type { RemoteFront } from '../cli/io.js';
import type { Grant, Request as Asked } from '../grants/entry.js';
import type { Attachment } from './attach.js';
import type { Boundary } from './boundary.js';
import type { Learning } from './learning.js';
import type { Tally } from './mediate.js';
import type { OutsidePrograms } from './outside-programs.js';
import type { RunRecord } from './record.js';

/** What is to be run, by which rules, and who is told of it. */
export interface RunRequest {
  /** The kind of boundary; `auto`: the strongest that this machine gives and the policy takes. */
  tier?: PlanTier | 'auto' | undefined;
  ruleset: Ruleset;
  /** What the ruleset was compiled from; where it is left out, nobody widens the session while it lives. */
  policies?: CompileInput;
  argv: readonly string[];
  /** Where the program is an agent: how it is told to speak through the door. */
  attachment: Attachment | undefined;
  nd7Home: string;
  environment: NodeJS.ProcessEnv;
  cwd: string;
  /** The program's standard streams, where they are not this process's own. */
  stdio?: readonly [number, number, number];
  /** The process that a shell waits for, where that is not this one. */
  front?: RemoteFront | undefined;
  /** Folders in which a program of nd7's own attacks the boundary: what became of protected names there is recorded, and no news to a person. */
  attacked?: readonly string[];
  /** What is shown inside besides. */
  shows?: readonly Shown[];
  /** Hears what the program does, where that is to be learned. */
  learning?: Learning;
  /** Told of the record when the program has ended, before its end is written. */
  beforeEnd?(record: RunRecord): Promise<void>;
  /** Told once, when the program is about to run. */
  started(boundary: Boundary): void;
  /** Told once, when the program has ended, what was decided about names, what the proxy refused, and what a person granted meanwhile. */
  decided(tallies: readonly Tally[], granted: readonly Grant[]): void;
  /** Told of what a program inside asks a person for. */
  asked?(request: Asked, outside: OutsidePrograms): void;
  /** Told what the record of this session lacks, where the policy lets it, and why it ended where that was not the program's doing. */
  warn(text: string): void;
}
