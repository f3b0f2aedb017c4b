import { toHex } from '@nd7/entry';
import type { VerifierKey } from './note.js';
import { parseVkey } from './note.js';

/** Which logs are known and which witnesses must have cosigned (C2SP tlog-policy). */
export interface WitnessPolicy {
  logs: { key: VerifierKey; url?: string }[];
  witnesses: { name: string; key: VerifierKey; url?: string }[];
  /** In the order of the file: members stand before the groups that name them. */
  groups: { name: string; threshold: number; members: string[] }[];
  /** A witness, a group, or `none`: no cosignature is asked for. */
  quorum: string;
}

/** A policy, or the first line (from 1) that is wrong and what is wrong with it. */
export type ParsedPolicy = { ok: true; policy: WitnessPolicy } | { ok: false; line: number; problem: string };

/** Reads a policy file. Bad ones are answered, never thrown. */
export function parsePolicy(text: string): ParsedPolicy {
  const reader = new PolicyReader();
  const lines = text.split('\n');
  for (const [i, line] of lines.entries()) {
    const problem = reader.read(line);
    if (problem !== undefined) return { ok: false, line: i + 1, problem };
  }
  const policy = reader.finish();
  return policy === undefined
    ? { ok: false, line: lines.length, problem: 'there is no quorum line (write "quorum none" to ask for no witness)' }
    : { ok: true, policy };
}

/** Whether these keys (of good cosignatures) make the policy's quorum. `quorum none` is made by nobody. */
export function hasQuorum(policy: WitnessPolicy, cosigners: readonly VerifierKey[]): boolean {
  if (policy.quorum === 'none') return true;
  const texts = new Set(cosigners.map(({ text }) => text));
  const present = new Set(policy.witnesses.filter(({ key }) => texts.has(key.text)).map(({ name }) => name));
  for (const { name, threshold, members } of policy.groups) {
    if (members.filter((member) => present.has(member)).length >= threshold) present.add(name);
  }
  return present.has(policy.quorum);
}

/** Takes one line after the other; holds what they have defined so far. */
class PolicyReader {
  private readonly logs: WitnessPolicy['logs'] = [];
  private readonly witnesses: WitnessPolicy['witnesses'] = [];
  private readonly groups: WitnessPolicy['groups'] = [];
  private quorum: string | undefined;
  private readonly names = new Set<string>();
  private readonly members = new Set<string>();

  /** What is wrong with the line, if anything. */
  read(line: string): string | undefined {
    if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(line)) return 'it holds a control character';
    const [word, ...rest] = line.split(/[ \t]+/).filter((item) => item !== '');
    if (word === undefined || word.startsWith('#')) return undefined;
    if (word === 'log') return this.log(rest);
    if (word === 'witness') return this.witness(rest);
    if (word === 'group') return this.group(rest);
    if (word === 'quorum') return this.setQuorum(rest);
    return `it begins with ${JSON.stringify(word)}: a line is log, witness, group or quorum`;
  }

  finish(): WitnessPolicy | undefined {
    const { logs, witnesses, groups, quorum } = this;
    return quorum === undefined ? undefined : { logs, witnesses, groups, quorum };
  }

  private log([vkey, url, ...more]: string[]): string | undefined {
    const key = vkey === undefined ? undefined : parseVkey(vkey);
    if (key?.type !== 1 || more.length > 0) return 'a log line is: log <vkey of a log> [<url>]';
    if (this.logs.some((other) => toHex(other.key.key) === toHex(key.key))) return 'this log is there already';
    this.logs.push({ key, ...(url === undefined ? {} : { url }) });
    return undefined;
  }

  private witness([name, vkey, url, ...more]: string[]): string | undefined {
    const key = vkey === undefined ? undefined : parseVkey(vkey);
    if (name === undefined || key?.type !== 4 || more.length > 0)
      return 'a witness line is: witness <name> <vkey of a witness, type 4> [<url>]';
    if (this.witnesses.some((other) => toHex(other.key.key) === toHex(key.key))) return 'this witness is there already';
    const problem = this.define(name);
    if (problem === undefined) this.witnesses.push({ name, key, ...(url === undefined ? {} : { url }) });
    return problem;
  }

  private group([name, k, ...members]: string[]): string | undefined {
    if (name === undefined || k === undefined || members.length === 0)
      return 'a group line is: group <name> any|all|<k> <member> …';
    const threshold = k === 'any' ? 1 : k === 'all' ? members.length : /^[1-9][0-9]{0,8}$/.test(k) ? Number(k) : 0;
    if (threshold < 1 || threshold > members.length)
      return `${JSON.stringify(k)} is not any, all or a number from 1 to the ${String(members.length)} members`;
    for (const member of members) {
      if (member === name || !this.names.has(member)) return `${JSON.stringify(member)} is not defined above`;
      if (this.members.has(member)) return `${JSON.stringify(member)} is a member already: each name is at most once`;
      this.members.add(member);
    }
    const problem = this.define(name);
    if (problem === undefined) this.groups.push({ name, threshold, members });
    return problem;
  }

  private setQuorum([name, ...more]: string[]): string | undefined {
    if (name === undefined || more.length > 0) return 'a quorum line is: quorum <name>|none';
    if (this.quorum !== undefined) return 'there is a quorum line already';
    if (name !== 'none' && !this.names.has(name)) return `${JSON.stringify(name)} is not defined above`;
    this.quorum = name;
    return undefined;
  }

  private define(name: string): string | undefined {
    if (name === 'none') return '"none" is not a name';
    if (this.names.has(name)) return `${JSON.stringify(name)} is defined already`;
    this.names.add(name);
    return undefined;
  }
}
