/** The reader's zone as the page names it: `Europe/Berlin`, `UTC+01:00`. */
export function readersZone(at: Date): { name: string; offset: string } {
  const offset = -at.getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  const two = (n: number) => String(n).padStart(2, '0');
  return {
    name: Intl.DateTimeFormat().resolvedOptions().timeZone,
    offset: `UTC${offset < 0 ? '−' : '+'}${two(hours)}:${two(rest)}`,
  };
}

/** `2026-11-29 20:04:12.512 UTC`: what hover shows and copies carry. */
export function utcText(ms: number): string {
  return `${new Date(ms).toISOString().replace('T', ' ').replace('Z', '')} UTC`;
}

/** How long, in the two largest units: `8 s`, `33 min`, `1 h 4 min`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (ms >= 0 && ms < 1000) return `${String(Math.round(ms))} ms`;
  if (seconds < 60) return `${String(seconds)} s`;
  const total = Math.round(seconds / 60);
  if (total < 60) return `${String(total)} min`;
  const hours = Math.floor(total / 60);
  if (hours < 48) return total % 60 === 0 ? `${String(hours)} h` : `${String(hours)} h ${String(total % 60)} min`;
  return `${String(Math.floor(hours / 24))} days`;
}
