// Prints the inner loop of the hash: BLAKE3's compression function on four lanes, its rounds unrolled and the order of
// the message words worked out here. AssemblyScript has no macros, and a function cannot change its caller's variables.

const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const COLUMNS = ['0 4 8 12', '1 5 9 13', '2 6 10 14', '3 7 11 15'].map((words) => words.split(' '));
const DIAGONALS = ['0 5 10 15', '1 6 11 12', '2 7 8 13', '3 4 9 14'].map((words) => words.split(' '));

const each = (count, print) => Array.from({ length: count }, (_, i) => print(i)).join('\n');

/** Sixteen bytes of each lane's block, turned so that each vector holds one message word of all lanes. */
function transpose(i) {
  const n = 4 * i;
  return `\
    const a${i} = v128.load(p0, ${16 * i}), b${i} = v128.load(p1, ${16 * i}), c${i} = v128.load(p2, ${16 * i}), d${i} = v128.load(p3, ${16 * i});
    const e${i} = v128.shuffle<u32>(a${i}, b${i}, 0, 4, 1, 5), f${i} = v128.shuffle<u32>(a${i}, b${i}, 2, 6, 3, 7);
    const g${i} = v128.shuffle<u32>(c${i}, d${i}, 0, 4, 1, 5), j${i} = v128.shuffle<u32>(c${i}, d${i}, 2, 6, 3, 7);
    const m${n} = v128.shuffle<u64>(e${i}, g${i}, 0, 2), m${n + 1} = v128.shuffle<u64>(e${i}, g${i}, 1, 3);
    const m${n + 2} = v128.shuffle<u64>(f${i}, j${i}, 0, 2), m${n + 3} = v128.shuffle<u64>(f${i}, j${i}, 1, 3);`;
}

/** The quarter rounds of four columns or diagonals, step by step over all four: they do not wait for each other. */
function quarters(places, words) {
  const step = (print) => each(4, (i) => `    ${print(...places[i].map((place) => `s${place}`), i)}`);
  const half = (k, rotateD, rotateB) =>
    [
      step((a, b, c, d, i) => `${a} = i32x4.add(i32x4.add(${a}, m${words[2 * i + k]}), ${b});`),
      step((a, b, c, d) => `${d} = ${rotateD}(v128.xor(${d}, ${a}));`),
      step((a, b, c, d) => `${c} = i32x4.add(${c}, ${d});`),
      step((a, b, c) => `${b} = ${rotateB}(v128.xor(${b}, ${c}));`),
    ].join('\n');
  return `${half(0, 'rotate16', 'rotate12')}\n${half(1, 'rotate8', 'rotate7')}`;
}

export function printSteps() {
  let order = Array.from({ length: 16 }, (_, i) => i);
  const rounds = each(7, (round) => {
    if (round > 0) order = PERMUTATION.map((i) => order[i]);
    return `    // round ${round + 1}\n${quarters(COLUMNS, order.slice(0, 8))}\n${quarters(DIAGONALS, order.slice(8))}`;
  });
  return `// Printed by kernel/steps.mjs through kernel/build.mjs: change it there.
import { rotate16, rotate12, rotate8, rotate7, COUNTERS, FLAGS, LENGTHS, STATE, SOURCES } from './lanes';

/**
 * Compresses \`count\` blocks of 64 bytes in each of the four lanes. The first goes with the flags and lengths that stand
 * in memory, the others with none and 64; the lanes' sources move on.
 */
export function steps(count: u32): void {
${each(8, (i) => `  let h${i} = v128.load(STATE, ${16 * i});`)}
${each(4, (i) => `  let p${i} = <usize>load<u32>(SOURCES, ${4 * i});`)}
  const counters = v128.load(COUNTERS);
  let lengths = v128.load(LENGTHS);
  let flags = v128.load(FLAGS);
  do {
${each(4, transpose)}
${each(8, (i) => `    let s${i} = h${i};`)}
    let s8 = i32x4.splat(0x6a09e667), s9 = i32x4.splat(0xbb67ae85);
    let s10 = i32x4.splat(0x3c6ef372), s11 = i32x4.splat(0xa54ff53a);
    let s12 = counters, s13 = i32x4.splat(0), s14 = lengths, s15 = flags;
${rounds}
${each(8, (i) => `    h${i} = v128.xor(s${i}, s${i + 8});`)}
${each(4, (i) => `    p${i} += 64;`)}
    lengths = i32x4.splat(64);
    flags = i32x4.splat(0);
  } while (--count != 0);
${each(8, (i) => `  v128.store(STATE, h${i}, ${16 * i});`)}
${each(4, (i) => `  store<u32>(SOURCES, <u32>p${i}, ${4 * i});`)}
}
`;
}
