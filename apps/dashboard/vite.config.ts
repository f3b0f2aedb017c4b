import react from '@vitejs/plugin-react';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** What all scripts of the page and its worker may weigh together, gzip, in bytes. */
const BUDGET = 300_000;

/** Prints what the reader's browser downloads and fails the build when the scripts outgrow their budget. */
function weigh(): Plugin {
  return {
    name: 'nd7-weigh',
    apply: 'build',
    closeBundle() {
      const folder = join(import.meta.dirname, 'dist', 'assets');
      const rows = readdirSync(folder)
        .filter((name) => /\.(js|css)$/.test(name))
        .map((name) => ({ name, bytes: gzipSync(readFileSync(join(folder, name)), { level: 9 }).length }));
      const scripts = rows.filter((row) => row.name.endsWith('.js')).reduce((sum, row) => sum + row.bytes, 0);
      for (const row of rows) console.log(`${(row.bytes / 1000).toFixed(1).padStart(8)} kB gzip  ${row.name}`);
      console.log(
        `${(scripts / 1000).toFixed(1).padStart(8)} kB gzip  all scripts; budget ${String(BUDGET / 1000)} kB`,
      );
      if (scripts > BUDGET)
        throw new Error(`scripts weigh ${String(scripts)} bytes gzip, over the budget of ${String(BUDGET)}`);
    },
  };
}

/** What is built is what readers get, whatever NODE_ENV the shell or the test has that builds it. */
function forReaders(): Plugin {
  return {
    name: 'nd7-for-readers',
    apply: 'build',
    config() {
      process.env['NODE_ENV'] = 'production';
    },
  };
}

export default defineConfig({
  plugins: [forReaders(), react(), weigh()],
  build: {
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // Everything is a file of its own: the policy allows no data: URL and no inline script.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    // One script on purpose: what is weighed is what a reader downloads, by the budget above.
    chunkSizeWarningLimit: 1000,
  },
  worker: {
    // One file without imports: the worker's own response may not load scripts.
    format: 'iife',
    rolldownOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:7377', '/t': 'http://127.0.0.1:7377' } },
});
