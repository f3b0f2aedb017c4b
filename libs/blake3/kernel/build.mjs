// Compiles the kernel and writes it as base64 into src/kernel.generated.ts.
//   node libs/blake3/kernel/build.mjs            writes
//   node libs/blake3/kernel/build.mjs --check    compiles into memory and fails where the committed files differ
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';
import { printSteps } from './steps.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const check = process.argv.includes('--check');
/** Pages of 64 KiB, as many as layout.ts needs. */
const PAGES = 193;

const outputs = new Map([['assembly/steps.generated.ts', printSteps()]]);

const files = new Map();
const { error, stderr } = await asc.main(
  [
    'assembly/index.ts',
    '--baseDir',
    here,
    '--outFile',
    'kernel.wasm',
    '--optimizeLevel',
    '3',
    '--shrinkLevel',
    '0',
    '--converge',
    '--noAssert',
    '--runtime',
    'stub',
    '--use',
    'abort=',
    '--enable',
    'simd',
    '--initialMemory',
    String(PAGES),
    '--maximumMemory',
    String(PAGES),
  ],
  {
    readFile: (name, base) => {
      if (outputs.has(name)) return outputs.get(name);
      try {
        return readFileSync(new URL(name, `file://${base ?? here}/`), 'utf8');
      } catch {
        return null;
      }
    },
    writeFile: (name, contents) => files.set(name, contents),
    listFiles: () => [],
  },
);
if (error) {
  process.stderr.write(`${stderr.toString()}\n${error.message}\n`);
  process.exit(1);
}
const wasm = files.get('kernel.wasm');
const end = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports.END.value;
if (Math.ceil(end / 65536) !== PAGES) {
  process.stderr.write(`layout.ts ends at ${end}: PAGES must be ${Math.ceil(end / 65536)}, it is ${PAGES}\n`);
  process.exit(1);
}
outputs.set(
  '../src/kernel.generated.ts',
  `// Written by kernel/build.mjs from kernel/assembly: ${wasm.length} bytes of WebAssembly, as base64.\nexport const KERNEL =\n` +
    Buffer.from(wasm)
      .toString('base64')
      .match(/.{1,116}/g)
      .map((part) => `  '${part}'`)
      .join(' +\n') +
    ';\n',
);
let stale = 0;
for (const [name, text] of outputs) {
  const path = new URL(name, import.meta.url);
  if (!check) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) {
    stale++;
    process.stderr.write(`${name} is not what kernel/build.mjs makes of the sources: run it and commit the result\n`);
  }
}
process.stdout.write(`${wasm.length} bytes of WebAssembly\n`);
process.exit(stale ? 1 : 0);
