// Bundles the built agent: `node apps/agent/bundle.mjs`, after tsc → dist/bundle/main.js. The same program in a few files instead of some 350, since
// looking for modules is most of what a start costs. bin/nd7.js takes it where it is as new as what it was made of.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, 'dist');
const out = join(dist, 'bundle');
// It comes with vite.
const { rolldown } = await import(pathToFileURL(createRequire(import.meta.resolve('vite')).resolve('rolldown')).href);

/** Modules that are loaded together, so that a command, a hook and the recorder each read what they need and little else. */
const GROUPS = [
  [
    'record',
    /\/(libs\/(entry|blake3|chain|detach|kernel|journal|signing|segment|hooks|tlog)\/|node_modules\/(jsonc-parser|@noble)\/|apps\/agent\/dist\/(cli\/(io|version|full-disk)|recorder\/home-path|show\/safe)\.)/,
  ],
  ['zod', /\/node_modules\/zod\//],
  ['confine', /\/(libs\/(policy|confine|egress)|apps\/agent\/dist\/(confine|policy))\//],
  ['cli', /\/(apps\/agent\/dist\/(cli|commands)\/(?!hook|recorder)|node_modules\/(commander|@bomb\.sh)\/)/],
  ['recorder', /\/apps\/agent\/dist\/recorder\/(?!checks|firing|alone|duplicates|ship)/],
].map(([name, test], i, { length }) => ({ name, test, priority: length - i }));

/** It starts the verifier's worker, which lies beside it here too: a thread that looks for modules starts 70 ms of processor time later. */
const pool = join(dist, 'verify/pool.js');

/** A module that asks where it stands is told where it stood: paths to what lies beside it go on leading there. `here`: how the bundle itself says where it stands. */
const places = (here) => ({
  name: 'places',
  transform(code, id) {
    if (!code.includes('import.meta.url')) return null;
    const from = id === pool ? here : `new URL(${JSON.stringify(relative(out, id))}, ${here}).href`;
    return { code: code.replaceAll('import.meta.url', from), map: null };
  },
});

rmSync(out, { recursive: true, force: true });
/** Bundles what begins at one module; returns what was written. */
async function write(input, codeSplitting, options = { format: 'es' }) {
  const bundle = await rolldown({
    input,
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    // Programs for one platform, found by where they lie.
    external: [/^koffi$/, /^@mongodb-js\/zstd$/],
    preserveEntrySignatures: false,
    checks: { ineffectiveDynamicImport: false },
    plugins: [
      places(options.format === 'es' ? 'import.meta.url' : "require('node:url').pathToFileURL(__filename).href"),
    ],
  });
  const { output } = await bundle.write({ dir: out, sourcemap: true, codeSplitting, ...options });
  await bundle.close();
  return output;
}

const output = [
  ...(await write({ main: join(dist, 'main.js') }, { includeDependenciesRecursively: false, groups: GROUPS })),
  // By itself: the thread reads one file.
  ...(await write({ worker: join(dist, 'verify/worker.js') }, false)),
];

// `nd7 run` and its host once more, as one script: V8 keeps the code that it makes of scripts, and not of modules (bin/with-code.js).
output.push(
  ...(await write({ run: join(dist, 'main.js') }, false, { format: 'cjs', entryFileNames: 'run.script.js' })),
);
const script = join(out, 'run.script.js');
const text = readFileSync(script, 'utf8').replace(
  // One byte a character is read without being decoded.
  /[^\x00-\x7f]/g,
  (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
);
writeFileSync(script, `(function (exports, require, module, __filename, __dirname) {${text}\n})`);

const modules = output.flatMap((chunk) => chunk.moduleIds ?? []).filter((id) => id.startsWith('/'));
const packages = [...new Set(modules.map((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id)?.[0]))].filter(Boolean);
const licences = packages.sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version} (${license})\n\n${file === undefined ? '' : readFileSync(join(folder, file), 'utf8')}`;
});
writeFileSync(join(out, 'LICENCES.txt'), licences.join(`\n${'-'.repeat(80)}\n\n`));

// What tsc writes at each build of a project says what was built.
const projects = [...new Set(modules.map((id) => /^.*\/(apps|libs)\/[^/]+\/dist\//.exec(id)?.[0]))].filter(Boolean);
const inputs = projects.map((folder) => join(folder, '.tsbuildinfo')).filter((path) => existsSync(path));
const hash = createHash('sha256');
for (const path of inputs) hash.update(readFileSync(path));
writeFileSync(
  join(out, 'made-of.json'),
  JSON.stringify({ inputs: inputs.map((path) => relative(dirname(out), path)), sha256: hash.digest('hex') }),
);
