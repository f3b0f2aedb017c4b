/** Bits of a limb: sums, differences and shifts of limbs stay small integers. */
const BITS = 30;
const LIMBS = 9;
const MASK = (1 << BITS) - 1;

/** Scratch of `jacobi`, which calls nothing while it uses it. */
let [left, right] = [new Int32Array(LIMBS), new Int32Array(LIMBS)];

/**
 * The Jacobi symbol (a/n) for 0 <= a < n < 2^270 and odd n: for a prime n whether a is a square modulo n (1), is none (-1), or is 0. By the binary algorithm (Cohen,
 * A Course in Computational Algebraic Number Theory, 1.4.12) on small integers: a power of BigInts, the other way to know it, takes ten times as long.
 */
export function jacobi(a: bigint, n: bigint): -1 | 0 | 1 {
  fill(left, a);
  fill(right, n);
  let size = lengthOf(left, LIMBS);
  let other = lengthOf(right, LIMBS);
  let sign: -1 | 1 = 1;
  let twos = size === 0 ? 0 : halve(left, size);
  for (;;) {
    while (size > 0 && left[size - 1] === 0) size--;
    if (size === 0) return other === 1 && right[0] === 1 ? sign : 0;
    const below = (right[0] as number) & 7;
    if ((twos & 1) === 1 && (below === 3 || below === 5)) sign = sign === 1 ? -1 : 1;
    if (size < other || (size === other && isLess(left, right, size))) {
      if (((left[0] as number) & (right[0] as number) & 3) === 3) sign = sign === 1 ? -1 : 1;
      [left, right] = [right, left];
      [size, other] = [other, size];
    }
    twos = reduce(left, right, size);
  }
}

function fill(limbs: Int32Array, value: bigint): void {
  for (let i = 0; i < LIMBS; i++) limbs[i] = Number(BigInt.asUintN(BITS, value >> BigInt(BITS * i)));
}

/** Limbs up to the highest that is not 0. */
function lengthOf(limbs: Int32Array, size: number): number {
  let length = size;
  while (length > 0 && limbs[length - 1] === 0) length--;
  return length;
}

/** a -= b, where a >= b and both are odd; then divides by the highest power of two that divides, and returns its exponent (of zero: any). */
function reduce(a: Int32Array, b: Int32Array, size: number): number {
  const first = (a[0] as number) - (b[0] as number);
  let borrow = first >>> 31;
  let last = first & MASK;
  const shift = last === 0 ? BITS : 31 - Math.clz32(last & -last);
  const rest = BITS - shift;
  for (let i = 1; i < size; i++) {
    const difference = (a[i] as number) - (b[i] as number) - borrow;
    borrow = difference >>> 31;
    const limb = difference & MASK;
    a[i - 1] = (last >>> shift) | ((limb << rest) & MASK);
    last = limb;
  }
  a[size - 1] = last >>> shift;
  return shift < BITS ? shift : BITS + halve(a, size);
}

/** Divides by the highest power of two that divides; returns its exponent (of zero: any). */
function halve(limbs: Int32Array, size: number): number {
  let twos = 0;
  while (twos < BITS * LIMBS) {
    const low = limbs[0] as number;
    const shift = low === 0 ? BITS : 31 - Math.clz32(low & -low);
    if (shift === 0) break;
    twos += shift;
    for (let i = 0; i < size; i++) {
      const above = i + 1 < size ? (limbs[i + 1] as number) : 0;
      limbs[i] = ((limbs[i] as number) >>> shift) | ((above << (BITS - shift)) & MASK);
    }
  }
  return twos;
}

function isLess(a: Int32Array, b: Int32Array, size: number): boolean {
  for (let i = size - 1; i >= 0; i--) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
