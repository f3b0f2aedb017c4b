// How long a grant holds.

/** To the end of the next tool call that ends, to the end of the session, or so many milliseconds. */
export type Scope = 'call' | 'session' | number;

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MOST_MS = 30 * 86_400_000;

/** Reads `call`, `session`, `90s`, `10m`, `2h`, `1d`; undefined for anything else, for nothing and for more than 30 days. */
export function parseScope(text: string): Scope | undefined {
  if (text === 'call' || text === 'session') return text;
  const [, count, unit = ''] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms > 0 && ms <= MOST_MS ? ms : undefined;
}

export function scopeText(scope: Scope): string {
  if (typeof scope === 'string') return scope;
  const unit = ['d', 'h', 'm'].find((one) => scope % (UNITS[one] as number) === 0) ?? 's';
  return `${String(scope / (UNITS[unit] as number))}${unit}`;
}

/** The two clocks by which a time is over: the wall's, and one that no hand moves but that may stand still while the machine sleeps. */
export interface Clocks {
  wall(): number;
  monotonic(): number;
}

export const systemClocks: Clocks = { wall: () => Date.now(), monotonic: () => performance.now() };

/** An end in time: reached when either clock has reached it, so that neither sleep nor a wall clock that is set back makes it later. */
export class Deadline {
  readonly #wall: number;
  readonly #monotonic: number;

  constructor(
    private readonly clocks: Clocks,
    ms: number,
  ) {
    this.#wall = clocks.wall() + ms;
    this.#monotonic = clocks.monotonic() + ms;
  }

  get at(): Date {
    return new Date(this.#wall);
  }

  get isOver(): boolean {
    return this.leftMs <= 0;
  }

  get leftMs(): number {
    return Math.min(this.#wall - this.clocks.wall(), this.#monotonic - this.clocks.monotonic());
  }
}
