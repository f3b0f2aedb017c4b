/** First 8 and last 6 characters; the rest is a way to hide a difference only if nobody can see it: hover shows all, copy takes all. */
export function shortHash(hash: string): string {
  return hash.length <= 16 ? hash : `${hash.slice(0, 8)}…${hash.slice(-6)}`;
}
