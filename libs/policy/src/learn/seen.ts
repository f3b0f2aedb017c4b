import type { CompileInput } from '../parts.js';
import type { PolicyDocument } from '../document.js';

/** One thing that a program did or tried, as the session's supervisor saw it. */
export interface Seen {
  /** `look`: asked whether a file is there. `make-folder`: a folder of this name was made or wanted. */
  what: 'read' | 'list' | 'look' | 'write' | 'make-folder' | 'exec' | 'socket' | 'dial' | 'bind';
  /** Real path; empty where nothing is there. For `dial` and `bind` address and port: `127.0.0.1:5432`. */
  path: string;
  /** The path as it was said, absolute and normal. */
  said: string;
  program: string;
}

/** One answer of the proxy. */
export interface SeenHost {
  host: string;
  port: number | null;
  allowed: boolean;
  /** Word of the proxy's refusal; null where it let the request through. */
  reason: string | null;
}

/** A name that the boundary refused by a rule about names. */
export interface RefusedName {
  path: string;
  /** Why the rule is there, for people. */
  because: string;
}

/** What is asked of the disk, outside of the session. */
export interface LearnFacts {
  /** What lies at a path, links followed; undefined: nothing. */
  kindOf(path: string): 'file' | 'folder' | 'socket' | undefined;
  /** Symbolic links on the way to a path, itself included. */
  linksOn(path: string): string[];
  /** The program that a script names in its first line; undefined: it is none. */
  interpreterOf(path: string): string | undefined;
  /** Whether git tracks a file. */
  tracked(path: string): boolean;
}

export interface LearnInput {
  /** The policies in force while the session learned, without what it was widened by. */
  policies: CompileInput;
  seen: readonly Seen[];
  hosts: readonly SeenHost[];
  refused: readonly RefusedName[];
  /** Ports of the session's loopback on which nd7 itself listens. */
  ownPorts: readonly number[];
  /** Items that somebody takes in: `read:~/.ssh/known_hosts`, as `Held.item` names them. */
  include: readonly string[];
  facts: LearnFacts;
}

/** Something that the program did or tried and that nobody should get without being asked. */
export interface Held {
  /** `read:PATH`, `write:PATH`, `exec:PATH`, `socket:NAME`, `host:HOST`, `raw:HOST`, `private:HOST`, `loopback:PORT`. */
  item: string;
  why: string;
  /** Programs that asked for it, sorted. */
  programs: string[];
}

export interface Learnt {
  /** A policy file that stands by itself: a profile. */
  document: PolicyDocument;
  held: Held[];
  /** What was taken in without being asked though the boundary refused it this time: the command may do more with it. */
  widened: string[];
}
