import { join } from 'node:path';
import { defineConfig } from 'vite';

// Bundles vectors-worker.ts into one script; the caller names the folder with --outDir.
export default defineConfig({
  logLevel: 'warn',
  build: {
    target: 'chrome123',
    emptyOutDir: true,
    lib: {
      entry: join(import.meta.dirname, 'vectors-worker.ts'),
      formats: ['iife'],
      name: 'vectors',
      fileName: () => 'vectors-worker.js',
    },
  },
});
