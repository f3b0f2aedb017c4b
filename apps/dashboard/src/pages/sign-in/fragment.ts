/** What a sign-in link carries behind its `#`: it is never sent anywhere by the browser itself. */
export interface SignInLink {
  token?: string;
  /** The vault's verifier key to pin. */
  pin?: string;
  /** Where to go on: a page of this dashboard. */
  to?: string;
}

/** A link leads to pages of this dashboard and nowhere else. */
const PAGE = /^\/(sessions|machines|incidents|verify)(?=[/?]|$)[A-Za-z0-9._~/?=&%-]*$/;

/** Reads `#token=…&pin=…&to=…`. */
export function parseFragment(hash: string): SignInLink {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const link: SignInLink = {};
  const token = parameters.get('token')?.trim();
  // A "+" of a verifier key that was not percent-encoded has become a space; no key has one.
  const pin = parameters.get('pin')?.trim().replaceAll(' ', '+');
  if (token !== undefined && token !== '') link.token = token;
  if (pin !== undefined && pin !== '') link.pin = pin;
  const to = parameters.get('to');
  if (to !== null && PAGE.test(to)) link.to = to;
  return link;
}

let taken: SignInLink | undefined;

/** Takes the link out of the address, once: the token must not stay in the address bar or the history. */
export function takeLink(): SignInLink {
  if (window.location.hash !== '') {
    taken = parseFragment(window.location.hash);
    window.history.replaceState(window.history.state, '', window.location.pathname);
  }
  return taken ?? {};
}

/** Forgets what was taken. */
export function forgetLink(): void {
  taken = undefined;
}
