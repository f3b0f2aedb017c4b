/** Classic BPF as seccomp reads it (include/uapi/linux/filter.h, seccomp.h), put together so that no jump is ever counted by hand. */

export interface Instruction {
  code: number;
  /** Instructions to skip when the condition holds; 0 to 255. */
  jt: number;
  jf: number;
  k: number;
}

/** Code every way through which ends in a `give`. */
export type Code = readonly Instruction[];

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP = 0x05; // BPF_JMP | BPF_JA
const RETURN = 0x06; // BPF_RET | BPF_K
const CONDITION = { equal: 0x15, atLeast: 0x35, hasBits: 0x45 } as const; // BPF_JMP | BPF_JEQ, BPF_JGE, BPF_JSET | BPF_K
const FARTHEST = 255;

/** Ends with an action. */
export const give = (action: number): Code => [{ code: RETURN, jt: 0, jf: 0, k: action }];

/** Loads 32 bits of seccomp_data, then goes on. */
export const load = (offset: number, then: Code): Code => [{ code: LOAD, jt: 0, jf: 0, k: offset }, ...then];

/** Keeps the bits of the mask, then goes on. */
export const keep = (mask: number, then: Code): Code => [{ code: AND, jt: 0, jf: 0, k: mask >>> 0 }, ...then];

/** What was loaded is compared, unsigned, with `k`. A way too long for a short jump is left by a long one. */
export function when(condition: keyof typeof CONDITION, k: number, yes: Code, no: Code): Code {
  const code = CONDITION[condition];
  if (yes.length <= FARTHEST) return [{ code, jt: 0, jf: yes.length, k: k >>> 0 }, ...yes, ...no];
  return [{ code, jt: 1, jf: 0, k: k >>> 0 }, { code: JUMP, jt: 0, jf: 0, k: yes.length }, ...yes, ...no];
}

/** The bytes of struct sock_filter, one after the other. */
export function assemble(code: Code): Uint8Array {
  const bytes = new Uint8Array(code.length * 8);
  const view = new DataView(bytes.buffer);
  code.forEach((instruction, i) => {
    view.setUint16(i * 8, instruction.code, true);
    view.setUint8(i * 8 + 2, instruction.jt);
    view.setUint8(i * 8 + 3, instruction.jf);
    view.setUint32(i * 8 + 4, instruction.k, true);
  });
  return bytes;
}
