// From lines to jobs: a line is cut into chunks of 1024 bytes, whose values are then paired, level by level, to its hash.
import { BATCH, HASHES, TREE_SIZE, TREES, VALUES } from './layout';
import { CHUNK_END, CHUNK_START, PARENT, putJob, ROOT, runJobs } from './lanes';

let jobs: u32 = 0;
let trees: u32 = 0;
/** Where the next chunk's value goes. */
let value: usize = VALUES;

/** Adds line number `line` to the batch; hashes the batch when it is large enough. */
export function hashLine(line: u32, source: usize, length: u32): void {
  const target = HASHES + 32 * line;
  if (length <= 1024) putJob(jobs++, source, length, 0, CHUNK_START, CHUNK_END | ROOT, target);
  else {
    const chunks = (length + 1023) >> 10;
    const tree = TREES + TREE_SIZE * trees++;
    store<u32>(tree, <u32>value);
    store<u32>(tree, chunks, 4);
    store<u32>(tree, <u32>target, 8);
    for (let i: u32 = 0; i < chunks; i++, value += 32) {
      putJob(jobs++, source + (i << 10), min<u32>(1024, length - (i << 10)), i, CHUNK_START, CHUNK_END, value);
    }
  }
  if (jobs >= BATCH) flushHashes();
}

/** Hashes what is in the batch. */
export function flushHashes(): void {
  if (jobs == 0) return;
  runJobs(jobs);
  const end = TREES + TREE_SIZE * trees;
  while (true) {
    // One level of all trees. A pair's value takes the place of the pairs before it, which have been read by then;
    // a value without a partner moves up as it is.
    jobs = 0;
    for (let tree: usize = TREES; tree < end; tree += TREE_SIZE) {
      const count = load<u32>(tree, 4);
      if (count < 2) continue;
      const values = <usize>load<u32>(tree);
      if (count == 2) putJob(jobs++, values, 64, 0, PARENT, ROOT, <usize>load<u32>(tree, 8));
      else for (let i: u32 = 0; i < count >> 1; i++) putJob(jobs++, values + (i << 6), 64, 0, PARENT, 0, values + (i << 5));
    }
    if (jobs == 0) break;
    runJobs(jobs);
    for (let tree: usize = TREES; tree < end; tree += TREE_SIZE) {
      const count = load<u32>(tree, 4);
      const values = <usize>load<u32>(tree);
      if (count > 2 && (count & 1) != 0) {
        v128.store(values + ((count >> 1) << 5), v128.load(values + ((count - 1) << 5)));
        v128.store(values + ((count >> 1) << 5) + 16, v128.load(values + ((count - 1) << 5) + 16));
      }
      store<u32>(tree, (count + 1) >> 1, 4);
    }
  }
  trees = 0;
  value = VALUES;
}
