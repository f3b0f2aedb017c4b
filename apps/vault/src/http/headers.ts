// Headers of every answer. The page may run its own scripts and nothing else; only the verifier's worker may compile WebAssembly.

/** The dashboard's page. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types nd7-worker',
].join('; ');

/**
 * The worker's own response: a worker takes its policy from there, and the page's would refuse WebAssembly. It has no network at all: bytes come to
 * it as messages. The browser's tests serve the dashboard under these very constants.
 */
export const WORKER_POLICY = "default-src 'none'; script-src 'wasm-unsafe-eval'";

/** Swagger UI needs inline styles and a data: image for its logo; it gets a page of its own for that. */
export const DOCS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const NOTHING = "default-src 'none'; frame-ancestors 'none'";

/** Set on every answer; a route that needs another policy sets its own over it. */
export function commonHeaders(publicUrl: string | undefined): Record<string, string> {
  return {
    'content-security-policy': NOTHING,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'x-frame-options': 'DENY',
    ...(publicUrl?.startsWith('https:') === true
      ? { 'strict-transport-security': 'max-age=63072000; includeSubDomains' }
      : {}),
  };
}
