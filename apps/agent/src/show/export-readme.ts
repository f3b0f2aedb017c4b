/** What the page beside an exported session is written from. */
export interface Exported {
  session: string;
  entries: number | undefined;
  receipts: number[];
  vkey: string | undefined;
  reference: boolean;
  blobs: number;
  exported: string;
}

function contents(e: Exported): string[] {
  const list = ['log.jsonl       the entries, one a line, exactly as recorded'];
  if (e.entries !== undefined)
    list.push('head.json       how many there are and the hash of the last, as the machine says');
  if (e.receipts.length > 0) list.push('receipts/       what the vault signed, one for each shipped segment');
  if (e.vkey !== undefined) {
    list.push(
      'vault.vkey      the verifier key that the machine pinned when it enrolled. Take it from somebody else where you can:',
    );
    list.push('                whoever made this folder could have made the key and the receipts too');
    list.push('witness.policy  the witnesses whose cosignatures the machine asks for (C2SP tlog-policy)');
  }
  if (e.blobs > 0) {
    list.push(
      `blobs/          ${String(e.blobs)} detached values (salt, then value), named by the hash in the log; secrets stay on the machine`,
    );
  }
  return list;
}

/** The page that lies beside an exported session: what is in the folder, and how to check it without nd7. */
export function exportReadme(e: Exported): string {
  const lastReceipt = e.receipts.at(-1);
  const key = e.vkey ?? 'VKEY';
  const reference = e.reference ? 'nd7ref.py' : 'nd7ref.py (tests/reference in the nd7 repository)';
  const parts: string[] = [
    `A recorded session, exported by nd7 at ${e.exported}.

session   ${e.session}
entries   ${e.entries === undefined ? 'no head file says how many' : `${String(e.entries)} by the head file`}
receipts  ${lastReceipt === undefined ? 'none: nothing outside the recording machine vouches for this log' : `${String(e.receipts.length)}, up to ${String(lastReceipt)} entries`}

${contents(e).join('\n')}

CHECK IT WITH ND7

    nd7 verify log.jsonl --session ${e.session}${lastReceipt === undefined ? '' : ` --receipts --vault-key '${key}'`}

CHECK IT WITHOUT ND7, with Python and nothing else: ${reference} is an independent reading of the format.

    python3 nd7ref.py verify ${e.session} log.jsonl --head head.json`,
  ];
  if (lastReceipt !== undefined) {
    parts.push(`    for r in receipts/*.tlog-proof; do
      python3 nd7ref.py receipt "$r" --vkey '${key}' --log log.jsonl --session ${e.session}
    done`);
  }
  parts.push(`CHECK IT BY HAND, with b3sum. The first line must carry the link of this session, each later one the hash of the line before:

    printf 'nd7 session v1\\n%s\\n' '${e.session}' | b3sum     # the "prev" of line 1
    sed -n 1p log.jsonl | tr -d '\\n' | b3sum                 # the "prev" of line 2, and so on
    tail -n 1 log.jsonl | tr -d '\\n' | b3sum                 # the "hash" in head.json, where no line was added since${e.blobs > 0 ? '\n    b3sum blobs/*                                            # each file has the name of its hash' : ''}

WHAT IT PROVES. A chain that holds says that the file fits itself. Only receipts say that it is what was recorded, up to the entry
they name; what follows rests on seals and on the recording machine. Entries whose source begins with "intent:" are what an agent said,
never proof of what ran.`);
  return `${parts.join('\n\n')}\n`;
}
