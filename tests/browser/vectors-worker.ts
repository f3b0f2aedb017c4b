// Runs in Chromium, never shipped: the parts of the checking worker that no message of its own reaches, bundled from the same sources.
import { blake3Hex, createKernel, MAX_CHUNK } from '@nd7/blake3';
import { fromHex, toHex } from '@nd7/entry';
import { nobleVerifier } from '@nd7/tlog';
import { browserVerifier } from '../../apps/dashboard/src/worker/ed25519.js';

interface Asked {
  ed25519: { message: string; pub_key: string; signature: string }[];
  blake3: number[];
  /** An address of the page's own origin that the worker must not reach. */
  address: string;
}

const bytes = (hex: string) => fromHex(hex) ?? new Uint8Array();

/** The ways out of a worker: those that reached the address, and the directives that refused the others. */
async function waysOut(address: string): Promise<{ reached: string[]; refused: string[] }> {
  const refused = new Set<string>();
  self.addEventListener('securitypolicyviolation', (event) => {
    refused.add((event as SecurityPolicyViolationEvent).effectiveDirective);
  });
  const ways: Record<string, () => unknown> = {
    fetch: () => fetch(address),
    importScripts: () => {
      (self as unknown as { importScripts: (url: string) => void }).importScripts(address);
    },
    eval: () => (0, eval)('1'),
  };
  const reached: string[] = [];
  for (const [name, way] of Object.entries(ways)) {
    try {
      await way();
      reached.push(name);
    } catch {
      // Refused, as it should be.
    }
  }
  // What was refused is told in a task of its own.
  while (reached.length + refused.size < Object.keys(ways).length)
    await new Promise((resolve) => setTimeout(resolve, 5));
  return { reached, refused: [...refused].sort() };
}

self.onmessage = (event: MessageEvent<Asked>) => {
  void (async () => {
    const items = event.data.ed25519.map((one) => ({
      key: bytes(one.pub_key),
      message: bytes(one.message),
      signature: bytes(one.signature),
    }));
    const { verify, kind } = await browserVerifier();
    const kernel = createKernel();
    const inputs = event.data.blake3.map((length) => Uint8Array.from({ length }, (_, i) => i % 251));
    self.postMessage({
      kind,
      network: await waysOut(event.data.address),
      own: await verify(items),
      noble: await nobleVerifier(items),
      plain: inputs.map(blake3Hex),
      // The kernel hashes lines: an input that holds a line feed, or is larger than a chunk, is none.
      lines: inputs.map((input) => {
        if (input.includes(10) || input.length >= MAX_CHUNK) return null;
        const line = new Uint8Array(input.length + 1);
        line.set(input);
        line[input.length] = 10;
        return toHex(kernel.scan(line).hashes.slice(0, 32));
      }),
    });
  })();
};
