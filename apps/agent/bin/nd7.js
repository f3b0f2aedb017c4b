#!/usr/bin/env node
// The bundle of a build is the same program in few files. Where there is none, or what it was made of was built anew since, the modules are loaded one
// by one.
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const dist = new URL('../dist/', import.meta.url);

async function isFresh() {
  try {
    const madeOf = new URL('bundle/made-of.json', dist);
    const { inputs, sha256 } = JSON.parse(readFileSync(madeOf, 'utf8'));
    const files = inputs.map((path) => new URL(path, dist));
    const { mtimeMs } = statSync(madeOf);
    if (files.every((file) => statSync(file).mtimeMs <= mtimeMs)) return true;
    // Copied or restored, perhaps: then what is in them decides.
    const { createHash } = await import('node:crypto');
    const hash = createHash('sha256');
    for (const file of files) hash.update(readFileSync(file));
    return hash.digest('hex') === sha256;
  } catch {
    return false;
  }
}

if (process.env.ND7_DEBUG) process.setSourceMapsEnabled(true);
const isBundled = await isFresh();
// What is started most, and keeps what it is compiled to.
if (isBundled && !process.env.ND7_DEBUG && ['run', 'host'].includes(process.argv[2]))
  (await import('./with-code.js')).start(fileURLToPath(new URL('bundle', dist)));
else await import(new URL(isBundled ? 'bundle/main.js' : 'main.js', dist).href);
