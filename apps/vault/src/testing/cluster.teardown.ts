import { rmSync } from 'node:fs';
import type { Kept } from './cluster.setup.js';

export default async function tearDown(): Promise<void> {
  const cluster = (globalThis as Kept).nd7Cluster;
  await cluster?.stop();
  if (cluster !== undefined) rmSync(cluster.folder, { recursive: true, force: true });
}
