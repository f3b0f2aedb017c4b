import { shortHash } from '../ui/short-hash.js';

const SESSION = /^\/machines\/([^/]+)\/sessions\/([^/]+)(\/verification)?$/;
const NAMES: Readonly<Record<string, string>> = {
  '/sessions': 'Sessions',
  '/incidents': 'Incidents',
  '/machines': 'Machines',
  '/verify': 'Verify',
  '/sign-in': 'Sign in',
};

/** What the browser calls the page: the place first, the program after it. */
export function documentTitle(path: string): string {
  const session = SESSION.exec(path);
  if (session !== null) {
    const id = shortHash(decoded(session[2] ?? ''));
    return `${session[3] === undefined ? `Session ${id}` : `Verification of ${id}`} · nd7`;
  }
  if (path.startsWith('/incidents/')) return `Incident ${decoded(path.slice('/incidents/'.length))} · nd7`;
  const name = NAMES[path];
  return name === undefined ? 'nd7' : `${name} · nd7`;
}

/** The page that this one belongs to: where Esc goes back to. */
export function pageAbove(path: string): string | undefined {
  const session = SESSION.exec(path);
  if (session !== null) return session[3] === undefined ? '/sessions' : path.slice(0, -'/verification'.length);
  return path.startsWith('/incidents/') ? '/incidents' : undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
