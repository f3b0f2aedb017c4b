import { useEffect, useRef, useSyncExternalStore } from 'react';

/** What a page does on each key. */
export type Keys = Record<string, (() => void) | undefined>;
interface Layer {
  keys: Keys;
  jump?: ((entry: number) => void) | undefined;
}

const layers: Layer[] = [];
const listeners = new Set<() => void>();
/** What has been typed after `g`; undefined outside. */
let chord: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** A single key waits this long for its second one, in milliseconds. */
const WAIT = 4000;
const SWITCH = 'nd7-keys';

function setChord(next: string | undefined): void {
  chord = next;
  clearTimeout(timer);
  if (next !== undefined)
    timer = setTimeout(() => {
      setChord(undefined);
    }, WAIT);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What has been typed after `g`, for the hint; undefined while nothing is awaited. */
export function useChord(): string | undefined {
  return useSyncExternalStore(subscribe, () => chord);
}

/** Whether single keys are on (WCAG 2.1.4: they can be switched off). */
export function areKeysOn(): boolean {
  try {
    return localStorage.getItem(SWITCH) !== 'off';
  } catch {
    return true;
  }
}

export function switchKeys(on: boolean): void {
  localStorage.setItem(SWITCH, on ? 'on' : 'off');
  for (const listener of listeners) listener();
}

export function useKeysOn(): boolean {
  return useSyncExternalStore(subscribe, areKeysOn);
}

/** Keys of a page or part, the one mounted last first. A key that is not there goes to the layer below. */
export function useKeys(keys: Keys, jump?: (entry: number) => void): void {
  const layer = useRef<Layer>({ keys, jump });
  layer.current.keys = keys;
  layer.current.jump = jump;
  useEffect(() => {
    const mine = layer.current;
    layers.push(mine);
    return () => {
      layers.splice(layers.indexOf(mine), 1);
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !isTick(target)
  );
}

function isTick(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && (target.type === 'checkbox' || target.type === 'radio');
}

/** Takes a key; true where somebody did something with it. `goTo` is where the letters after `g` lead. */
export function takeKey(event: KeyboardEvent, goTo: Readonly<Record<string, () => void>>): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  if (isTyping(event.target) || document.querySelector('[role="dialog"]') !== null) return false;
  const { key } = event;
  if (chord !== undefined) return takeChord(key, goTo);
  if (key !== 'Escape' && !areKeysOn()) return false;
  if (key === 'g') {
    setChord('');
    return true;
  }
  // A button or link under the focus keeps its own Enter and space.
  if (
    (key === 'Enter' || key === ' ') &&
    event.target instanceof HTMLElement &&
    event.target.closest('button, a, summary') !== null
  )
    return false;
  for (const layer of layers.toReversed()) {
    const act = layer.keys[key];
    if (act === undefined) continue;
    act();
    return true;
  }
  return false;
}

function takeChord(key: string, goTo: Readonly<Record<string, () => void>>): boolean {
  const typed = chord ?? '';
  if (/^[0-9]$/.test(key)) {
    setChord(typed + key);
    return true;
  }
  setChord(undefined);
  if (key === 'Enter' && typed !== '') {
    const jump = layers.toReversed().find((layer) => layer.jump !== undefined)?.jump;
    jump?.(Number(typed));
    return true;
  }
  const act = typed === '' && Object.hasOwn(goTo, key) ? goTo[key] : undefined;
  act?.();
  return true;
}
