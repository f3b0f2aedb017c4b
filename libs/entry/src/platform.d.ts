// The few names that Node and every browser have in common and that core libs may use. Core libs compile with
// `types: []`, so anything else of either platform is a compile error. A core lib that needs one of these writes
// `/// <reference path="../../entry/src/platform.d.ts" />`.

declare class TextEncoder {
  encode(input?: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(input?: Uint8Array, options?: { stream?: boolean }): string;
}

declare namespace WebAssembly {
  type Module = object;
  const Module: new (bytes: Uint8Array<ArrayBuffer>) => Module;
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number });
    readonly buffer: ArrayBuffer;
  }
  class Instance {
    constructor(module: Module, imports?: Record<string, Record<string, unknown>>);
    readonly exports: Record<string, unknown>;
  }
}

declare const crypto: {
  getRandomValues<T extends Uint8Array>(array: T): T;
};
