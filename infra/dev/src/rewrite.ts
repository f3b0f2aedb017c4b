// The attack of the tour: what somebody who owns the developer's account can do to a session afterwards. He has the machine
// key, so he can change an entry, link everything after it anew, certify a new first key, sign every seal again and write a
// head to match. Kept here, not in a lib: nothing in the product rewrites a log.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake3Hex } from '@nd7/blake3';
import { certMessage, formatHeadFile, genesis, sealMessage } from '@nd7/chain';
import { toHex, utf8 } from '@nd7/entry';
import { generateKeyPair, loadKeyFile } from '@nd7/signing';

const PREFIX = /^\{"v":1,"seq":(\d+),"prev":"[0-9a-f]{64}",/;

/** Reads the lines of a session's log. */
export function readLines(home: string, session: string): string[] {
  return readFileSync(logFile(home, session), 'utf8').split('\n').slice(0, -1);
}

function logFile(home: string, session: string): string {
  return join(home, 'sessions', session, 'log.jsonl');
}

/** Changes one character in the middle of an entry's data and nothing else: the clumsy forger. */
export function editOneByte(home: string, session: string, seq: number): void {
  const lines = readLines(home, session);
  const line = lines[seq] ?? '';
  const at = line.lastIndexOf('e');
  lines[seq] = `${line.slice(0, at)}3${line.slice(at + 1)}`;
  writeFileSync(logFile(home, session), `${lines.join('\n')}\n`);
}

/**
 * Rewrites a session so that it verifies again: `change` gets each line's text after the link and answers with what shall
 * stand there. Returns the new head.
 */
export function rewriteChain(
  home: string,
  session: string,
  change: (seq: number, rest: string) => string,
): { entries: number; hash: string } {
  const machine = loadKeyFile(join(home, 'keys', 'machine.key'));
  let key = generateKeyPair();
  let prev = genesis(session);
  let seals = 0;
  const lines = readLines(home, session).map((line, seq) => {
    let rest = line.replace(PREFIX, '');
    if (seq === 0) {
      const cert = toHex(machine.sign(certMessage(session, key.publicKey)));
      rest = rest
        .replace(/"key":"[0-9a-f]{64}"/, `"key":"${key.publicKey}"`)
        .replace(/"cert":"[0-9a-f]{128}"/, `"cert":"${cert}"`);
    } else if (/"source":"recorder:nd7","kind":"seal"/.test(rest)) {
      const next = generateKeyPair();
      const sig = toHex(key.sign(sealMessage(session, seq, prev, next.publicKey)));
      rest = rest
        .replace(/"next":"[0-9a-f]{64}"/, `"next":"${next.publicKey}"`)
        .replace(/"sig":"[0-9a-f]{128}"/, `"sig":"${sig}"`);
      key = next;
      seals += 1;
    } else {
      rest = change(seq, rest);
    }
    const written = `{"v":1,"seq":${seq},"prev":"${prev}",${rest}`;
    prev = blake3Hex(utf8(written));
    return written;
  });
  const text = `${lines.join('\n')}\n`;
  writeFileSync(logFile(home, session), text);
  writeFileSync(
    join(home, 'sessions', session, 'head.json'),
    formatHeadFile({ entries: lines.length, hash: prev, bytes: utf8(text).length }),
  );
  const keys = join(home, 'keys', 'sessions', session);
  for (const name of readdirSync(keys)) rmSync(join(keys, name));
  writeFileSync(join(keys, `${seals}.key`), key.pem(), { mode: 0o600 });
  return { entries: lines.length, hash: prev };
}
