import { useSyncExternalStore } from 'react';

/** A vault's verifier key as the reader pinned it. It counts, whatever the vault says later. */
export interface Pin {
  /** `name+hex8+base64`. */
  vkey: string;
  /** Milliseconds since the epoch. */
  at: number;
  how: 'link' | 'by hand';
}

const KEY = 'nd7-pins';
const listeners = new Set<() => void>();
let cached: { text: string | null; pins: Readonly<Record<string, Pin>> } = { text: null, pins: {} };

/** The log's name that a verifier key speaks for: what stands before its first `+`. */
export function originOf(vkey: string): string {
  return vkey.split('+', 1)[0] ?? '';
}

/** All pins by origin. What is in storage and not of the form is not a pin. */
export function readPins(): Readonly<Record<string, Pin>> {
  const text = read();
  if (text === cached.text) return cached.pins;
  cached = { text, pins: parse(text) };
  return cached.pins;
}

function parse(text: string | null): Record<string, Pin> {
  const pins: Record<string, Pin> = {};
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    for (const [origin, pin] of Object.entries(value as Record<string, Partial<Pin> | null>)) {
      if (typeof pin?.vkey !== 'string' || originOf(pin.vkey) !== origin || typeof pin.at !== 'number') continue;
      pins[origin] = { vkey: pin.vkey, at: pin.at, how: pin.how === 'link' ? 'link' : 'by hand' };
    }
  } catch {
    return {};
  }
  return pins;
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Pins a key for its origin. Whoever calls has asked the reader where another one was pinned. */
export function setPin(vkey: string, how: Pin['how'], now: number): void {
  write({ ...readPins(), [originOf(vkey)]: { vkey, at: now, how } });
}

function write(pins: Record<string, Pin>): void {
  localStorage.setItem(KEY, JSON.stringify(pins));
  for (const listener of listeners) listener();
}

/** The pin of an origin, kept up to date in every tab. */
export function usePin(origin: string | undefined): Pin | undefined {
  const pins = useSyncExternalStore(subscribe, readPins);
  return origin === undefined || !Object.hasOwn(pins, origin) ? undefined : pins[origin];
}

function subscribe(listener: () => void): () => void {
  const heard = (event: StorageEvent) => {
    if (event.key === KEY) listener();
  };
  listeners.add(listener);
  globalThis.addEventListener('storage', heard);
  return () => {
    listeners.delete(listener);
    globalThis.removeEventListener('storage', heard);
  };
}
