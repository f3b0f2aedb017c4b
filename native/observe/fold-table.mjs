// Unicode's part in comparing names, as tables for names-fold.c: `writeFoldTable(folder)` → folder/fold-table.h. The data is that of the Node that builds, by the
// same steps as `foldName` of libs/policy; a test holds the two together for every character there is.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const LAST = 0x10ffff;
const PAGE = 128;
/** Hangul syllables are taken apart by arithmetic (Unicode, 3.12), not by the table. */
const HANGUL = [0xac00, 0xd7a3];
/** It counts as a mark until marks are in their order, then as the letter that it is in capitals. */
const YPOGEGRAMMENI = '\u0345';

/** One character as `foldName` folds it, before the marks of the whole name are put in order. */
export function foldCharacter(character) {
  for (let folded = character; ;) {
    const next = [...folded.replace(/\p{Default_Ignorable_Code_Point}/gu, '').normalize('NFKD')]
      .map((c) => (c === YPOGEGRAMMENI ? c : c.toUpperCase().toLowerCase().replaceAll('ς', 'σ')))
      .join('');
    if (next === folded) return folded;
    folded = next;
  }
}

const isSurrogate = (code) => code >= 0xd800 && code <= 0xdfff;

/** Of every mark (a character that normalization moves) the rank of its class, from 1 on. Node does not tell classes, but it puts marks in order. */
function ranks() {
  const marks = [];
  // U+0345 has the highest class of all: a mark before which it does not stay has a lower one.
  for (let code = 1; code <= LAST; code++) {
    const c = isSurrogate(code) ? '' : String.fromCodePoint(code);
    if (c !== '' && c.normalize('NFD') === c && `${YPOGEGRAMMENI}${c}`.normalize('NFD') === `${c}${YPOGEGRAMMENI}`)
      marks.push(c);
  }
  const swaps = (a, b) => `${a}${b}`.normalize('NFD') !== `${a}${b}`;
  marks.sort((a, b) => (swaps(b, a) ? -1 : swaps(a, b) ? 1 : 0));
  marks.push(YPOGEGRAMMENI);
  let rank = 0;
  return new Map(marks.map((mark, i) => [mark.codePointAt(0), i === 0 || swaps(mark, marks[i - 1]) ? ++rank : rank]));
}

/** A function from characters to small numbers as two arrays: pages of PAGE characters, and where each is. */
function paged(value) {
  const pages = new Map();
  const index = [];
  for (let first = 0; first <= LAST; first += PAGE) {
    const page = Array.from({ length: PAGE }, (_, i) => value(first + i)).join();
    if (!pages.has(page)) pages.set(page, pages.size);
    index.push(pages.get(page));
  }
  return { index, values: [...pages.keys()] };
}

export function foldTable() {
  const pool = [];
  const entries = [[0, 0]];
  const known = new Map();
  const fold = paged((code) => {
    if (isSurrogate(code) || (code >= HANGUL[0] && code <= HANGUL[1])) return 0;
    const c = String.fromCodePoint(code);
    const folded = foldCharacter(c);
    if (folded === c) return 0;
    if (!known.has(folded)) {
      known.set(folded, entries.length);
      const codes = [...folded].map((one) => one.codePointAt(0));
      entries.push([pool.length, codes.length]);
      pool.push(...codes);
    }
    return known.get(folded);
  });
  const classes = ranks();
  const rank = paged((code) => classes.get(code) ?? 0);
  const array = (type, name, values) => `static const ${type} ${name}[] = {\n${values.join(',\n')}\n};\n`;
  return [
    `/* Made by fold-table.mjs from Unicode ${process.versions.unicode}. */`,
    `#define FOLD_PAGE ${PAGE}u`,
    array('uint16_t', 'fold_index', fold.index),
    array('uint16_t', 'fold_values', fold.values),
    array(
      'struct fold_entry',
      'fold_entries',
      entries.map(([at, count]) => `{${at}, ${count}}`),
    ),
    array('uint32_t', 'fold_pool', pool),
    array('uint16_t', 'rank_index', rank.index),
    array('uint8_t', 'rank_values', rank.values),
  ].join('\n');
}

export function writeFoldTable(folder) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'fold-table.h');
  writeFileSync(`${file}.${process.pid}`, foldTable());
  renameSync(`${file}.${process.pid}`, file);
}
