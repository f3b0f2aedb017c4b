// What this machine says of names in files, as far as it decides who is asked: hosts(5), resolv.conf(5), nsswitch.conf(5).
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';

/** Where those files are. */
export interface NameFiles {
  hosts: string;
  resolver: string;
  services: string;
}

export const NAME_FILES: NameFiles = {
  hosts: '/etc/hosts',
  resolver: '/etc/resolv.conf',
  services: '/etc/nsswitch.conf',
};

/** Addresses by name in lower case, of a hosts file. */
export function readHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address.split('%', 1)[0] as string) === 0) continue;
    for (const name of names.map((one) => one.toLowerCase().replace(/\.$/, '')))
      hosts.set(name, [...(hosts.get(name) ?? []), address]);
  }
  return hosts;
}

/** Which names a name is looked up as, one after the other, as `search` and `ndots` have it. */
export function searched(name: string, resolver: string): string[] {
  let [suffixes, dots] = [[] as string[], 1];
  for (const line of resolver.split('\n')) {
    const [word = '', ...rest] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (word === 'search' || word === 'domain') suffixes = rest.map((one) => one.replace(/\.$/, ''));
    if (word !== 'options') continue;
    const said = rest.map((one) => /^ndots:(\d+)$/.exec(one)?.[1]).find((one) => one !== undefined);
    if (said !== undefined) dots = Number(said);
  }
  const longer = suffixes.filter((one) => one !== '').map((suffix) => `${name}.${suffix}`);
  return name.split('.').length - 1 >= dots ? [name, ...longer] : [...longer, name];
}

const ASKED = new Set(['files', 'dns', 'resolve']);
/** Sources besides files and DNS whose names have another form than those that are looked up here, or which DNS speaks for as well. */
const BESIDES = new Set(['mdns_minimal', 'mdns4_minimal', 'mdns6_minimal', 'myhostname', 'mymachines']);
/** systemd's own resolver, where DNS is asked there. */
const STUB = /^\s*nameserver\s+127\.0\.0\.5[34]\s*$/m;

/**
 * Whether the hosts file and then DNS say of a name what the C library would: that has modules for other sources, which nobody but it can ask. Names of one
 * label and those below `local` are such sources' in any case.
 */
export function isPlain(name: string, services: string | undefined, resolver: string): boolean {
  if (!name.includes('.') || name.toLowerCase().endsWith('.local')) return false;
  const said = services?.split('\n').find((line) => /^\s*hosts\s*:/.test(line));
  // Without a word of it C libraries ask both.
  if (said === undefined) return true;
  // What the file does not know is not there.
  if (/\bfiles\s*\[/.test(said)) return false;
  const sources = said
    .replace(/#.*/, '')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/^\s*hosts\s*:/, '')
    .trim()
    .split(/\s+/);
  if (sources.includes('resolve') && !STUB.test(resolver)) return false;
  const asked = sources.filter((one) => ASKED.has(one));
  const isKnown = sources.every((one) => ASKED.has(one) || BESIDES.has(one));
  // systemd's reads the hosts file itself.
  return isKnown && asked.includes('files') && (asked[0] === 'files' || asked[0] === 'resolve') && asked.length > 1;
}

/** The text of a file, read anew when that is another; undefined where there is none. */
export class Kept {
  #mark = '';
  #text: string | undefined;

  constructor(private readonly path: string) {}

  get text(): string | undefined {
    const found = statSync(this.path, { throwIfNoEntry: false });
    const mark = found === undefined ? '' : `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
    if (mark !== this.#mark) {
      this.#text = found?.isFile() === true ? readFileSync(this.path, 'utf8') : undefined;
      this.#mark = mark;
    }
    return this.#text;
  }
}
