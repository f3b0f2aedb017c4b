// What the kernel is worth beside what one would else take: node libs/blake3/bench.mjs [megabytes]
// Rounds are interleaved; MB/s are per second of this process's CPU time, so that other work on the machine counts less.
// On two hardware threads of one core it still counts: what waits for results (hash-wasm) loses less than what fills the
// vector units (the kernel), so ratios are best on a quiet machine.
import { blake3 as noble } from '@noble/hashes/blake3.js';
import { createBLAKE3 } from 'hash-wasm';
import { cpus } from 'node:os';
import { createKernel } from './dist/index.js';
import { KERNEL } from './dist/kernel.generated.js';

const CHUNK = 1 << 20;
const ROUNDS = 9;
const megabytes = Number(process.argv[2] ?? 48);

/** A line like a recorded tool call: code with escapes, some numbers, some text beyond ASCII. */
function line(seq, size, plain) {
  const head = `{"v":1,"seq":${seq},"prev":"${'3c'.repeat(32)}","time":"2026-11-29T19:41:00.123Z","source":"intent:claude-code","kind":"tool.after","data":`;
  const tool = {
    session_id: 'b3c1',
    cwd: '/home/anna/project',
    tool_name: 'Edit',
    tool_input: { file_path: `/src/part-${seq}.ts`, replace_all: false, old_string: '' },
    duration_ms: seq * 1.5,
    tool_response: { lines: [1, 22, 333], ok: true, user: null, content: '' },
  };
  const code = plain
    ? 'The quick brown fox jumps over the lazy dog. '
    : 'const total = items.map((item) => item.size * 2);\n\tif (total > "limit") return `größer`;\n';
  let text = head + JSON.stringify(tool) + '}';
  tool.tool_response.content = code.repeat(40).slice(0, 10);
  while (Buffer.byteLength(text) < size - code.length) {
    tool.tool_response.content += code;
    text = head + JSON.stringify(tool) + '}';
  }
  return text + ' '.repeat(Math.max(0, size - 1 - Buffer.byteLength(text))) + '\n';
}

function corpus(size, plain) {
  const chunks = [];
  let seq = 0;
  for (let bytes = 0; bytes < megabytes << 20; bytes += CHUNK) {
    const lines = [];
    let length = 0;
    // A few different lines, repeated: making them must not take longer than measuring.
    const some = Array.from({ length: 16 }, () => line(seq++, size, plain));
    for (let i = 0; length + size + 8 <= CHUNK || i === 0; i++) {
      lines.push(some[i % 16]);
      length += Buffer.byteLength(some[i % 16]);
    }
    chunks.push(Buffer.from(lines.join('')));
  }
  return chunks;
}

const kernel = createKernel();
const raw = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(KERNEL, 'base64'))).exports;
const rawBytes = new Uint8Array(raw.memory.buffer);
const hasher = await createBLAKE3();

function perLine(chunk, use) {
  for (let start = 0, end; (end = chunk.indexOf(10, start)) >= 0; start = end + 1) use(chunk.subarray(start, end));
}

const ways = {
  'kernel, hashes only': (chunk) => {
    rawBytes.set(chunk, raw.INPUT.value);
    raw.scan(chunk.length, 0);
  },
  'kernel, scan with all checks': (chunk) => {
    if (kernel.scan(chunk).faults.some((fault) => fault !== 0)) throw new Error('the corpus has a fault');
  },
  'hash-wasm': (chunk) => perLine(chunk, (bytes) => hasher.init().update(bytes).digest('binary')),
  'hash-wasm + JSON.parse': (chunk) =>
    perLine(chunk, (bytes) => {
      hasher.init().update(bytes).digest('binary');
      JSON.parse(bytes.toString('utf8'));
    }),
  noble: (chunk) => perLine(chunk.subarray(0, chunk.length >> 4), (bytes) => noble(bytes)),
};
const share = { noble: 1 / 16 };

function measure(size, plain) {
  const chunks = corpus(size, plain);
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const speeds = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const before = process.cpuUsage();
      for (const chunk of chunks) way(chunk);
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) speeds[name].push((bytes * (share[name] ?? 1)) / (user + system));
    }
  }
  const sorted = Object.fromEntries(
    Object.entries(speeds).map(([name, list]) => [name, list.toSorted((a, b) => a - b)]),
  );
  const median = (name) => sorted[name][ROUNDS >> 1];
  console.log(`\n${size} bytes a line, ${plain ? 'plain ASCII text' : 'code: an escape every 30 bytes, some UTF-8'}`);
  for (const name of Object.keys(ways)) {
    console.log(
      `  ${name.padEnd(30)} median ${median(name).toFixed(0).padStart(5)}, best ${sorted[name].at(-1).toFixed(0).padStart(5)} MB/s`,
    );
  }
  const hashes = median('kernel, hashes only') / median('hash-wasm');
  const scans = median('kernel, scan with all checks') / median('hash-wasm + JSON.parse');
  console.log(`  hashes: ${hashes.toFixed(1)} x hash-wasm; scan: ${scans.toFixed(1)} x (hash-wasm + JSON.parse)`);
}

console.log(`${cpus()[0].model}, Node ${process.version}, kernel of ${Buffer.from(KERNEL, 'base64').length} bytes`);
for (const size of process.argv[3] ? [Number(process.argv[3])] : [256, 1024, 2048, 16384, 262144]) {
  measure(size, true);
  measure(size, false);
}
