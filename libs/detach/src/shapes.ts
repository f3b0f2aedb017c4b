import type { Range } from './memory.js';
import { isDigit, isWord, Runs, type CharSet } from './runs.js';

/** A token that its issuer gave a recognisable beginning. */
interface Shape {
  prefix: string;
  body: CharSet;
  /** Characters of the body: at least, and where the length is fixed exactly. */
  least: number;
  exact?: boolean;
  /** The body must look drawn by lot: for prefixes that innocent words begin with too. */
  random?: boolean;
}

const shape = (prefixes: string, body: CharSet, least: number, more: Partial<Shape> = {}): Shape[] =>
  prefixes.split(' ').map((prefix) => ({ prefix, body, least, ...more }));

/** By issuer; the lengths are those the issuers document, or a safe minimum where they say it may change. */
const SHAPES: readonly Shape[] = [
  ...shape('AKIA ASIA ABIA ACCA', 'upper', 16, { exact: true }), // AWS key ids
  ...shape('ghp_ gho_ ghu_ ghs_ ghr_', 'alnum', 30), // GitHub
  ...shape('github_pat_', 'word', 40),
  ...shape('glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-', 'dotted', 20), // GitLab
  ...shape('xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe.xoxp- xoxe.xoxb- xoxc- xoxd- xapp-', 'base64url', 10), // Slack
  ...shape('hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/', 'path', 20),
  ...shape('npm_', 'alnum', 36), // npm
  ...shape('pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw', 'base64url', 30), // PyPI, TestPyPI
  ...shape('sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1-', 'base64url', 20), // Anthropic, OpenAI, OpenRouter
  ...shape('sk-', 'base64url', 20, { random: true }),
  ...shape('AIza', 'base64url', 35), // Google
  ...shape('ya29.', 'base64url', 20),
  ...shape('GOCSPX-', 'base64url', 20),
  ...shape('sk_live_ sk_test_ rk_live_ rk_test_ pk_live_', 'alnum', 16), // Stripe
  ...shape('whsec_', 'base64', 16),
  ...shape('hf_ api_org_', 'alnum', 30, { random: true }), // Hugging Face
  ...shape('dop_v1_ doo_v1_ dor_v1_', 'hex', 64), // DigitalOcean
  ...shape('SG.', 'dotted', 60), // SendGrid
  ...shape('dckr_pat_ dckr_oat_', 'base64url', 20), // Docker Hub
  ...shape('hvs. hvb. hvr.', 'base64url', 24), // HashiCorp Vault
  ...shape('AGE-SECRET-KEY-1', 'upper', 50), // age
  ...shape('shpat_ shpca_ shppa_ shpss_', 'hex', 32), // Shopify
  ...shape('lin_api_ lin_oauth_', 'alnum', 32), // Linear
  ...shape('glsa_', 'word', 32), // Grafana
  ...shape('ATATT3', 'base64url', 60), // Atlassian
  ...shape('PMAK-', 'base64url', 50), // Postman
  ...shape('NRAK-', 'upper', 27), // New Relic
  ...shape('sbp_', 'hex', 40), // Supabase
  ...shape('pul-', 'hex', 40), // Pulumi
  ...shape('dapi', 'hex', 32), // Databricks
  ...shape('nd7e1_', 'word', 43), // ours: enrolment, machine and reader tokens (base64url, which may hold '-')
  ...shape('nd7m1_ nd7r1_', 'base64url', 43),
];

/** By the first two characters. */
const BY_START = new Map<number, Shape[]>();
for (const s of SHAPES) {
  const key = startKey(s.prefix.charCodeAt(0), s.prefix.charCodeAt(1));
  BY_START.set(
    key,
    [...(BY_START.get(key) ?? []), s].sort((a, b) => b.prefix.length - a.prefix.length),
  );
}

function startKey(a: number, b: number): number {
  return (a << 8) | b;
}

/** Tokens of a known shape, JSON web tokens, private keys in PEM, passwords in URLs. Ranges in order, not overlapping per kind. */
export function findShapes(runs: Runs): Range[] {
  return [...tokens(runs), ...pemKeys(runs.text), ...urlPasswords(runs)];
}

function tokens(runs: Runs): Range[] {
  const { text } = runs;
  const found: Range[] = [];
  for (let i = 0; i + 1 < text.length; i++) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    if (a > 0x7f || b > 0x7f) continue;
    if (a === 0x65 && b === 0x79) {
      const end = webToken(runs, i);
      if (end > 0) {
        found.push({ start: i, end });
        i = end - 1;
        continue;
      }
    }
    const shapes = BY_START.get(startKey(a, b));
    if (!shapes || (i > 0 && isWord(text.charCodeAt(i - 1)))) continue;
    for (const s of shapes) {
      const end = match(runs, s, i);
      if (end < 0) continue;
      found.push({ start: i, end });
      i = end - 1;
      break;
    }
  }
  runs.steps += text.length;
  return found;
}

function match(runs: Runs, s: Shape, at: number): number {
  if (!runs.text.startsWith(s.prefix, at)) return -1;
  const body = at + s.prefix.length;
  const end = runs.end(s.body, body);
  const length = end - body;
  if (length < s.least || (s.exact === true && (length !== s.least || isWord(runs.text.charCodeAt(end))))) return -1;
  return s.random === true && !looksRandom(runs.text.slice(body, Math.min(end, body + 64))) ? -1 : end;
}

/** A letter, a digit in two places or more, and no words joined by dashes: `sk-learn-some-dashed-name` is none. */
function looksRandom(body: string): boolean {
  let digits = 0;
  for (let i = 0; i < body.length; i++) if (isDigit(body.charCodeAt(i))) digits++;
  return digits >= 2 && /[A-Za-z]/.test(body) && !/^[a-z]+(?:-[a-z0-9]+){2,}$/.test(body);
}

/** `eyJ….eyJ….…` (RFC 7519): header and claims are JSON objects in base64url. -1 for none. */
function webToken(runs: Runs, at: number): number {
  const { text } = runs;
  if (text.charCodeAt(at + 2) !== 0x4a || (at > 0 && isWord(text.charCodeAt(at - 1)))) return -1;
  const header = runs.end('base64url', at);
  if (header - at < 10 || !text.startsWith('.eyJ', header)) return -1;
  const claims = runs.end('base64url', header + 1);
  if (claims - header < 10 || text.charCodeAt(claims) !== 0x2e) return -1;
  return runs.end('base64url', claims + 1);
}

const BEGIN = '-----BEGIN ';

/** From `-----BEGIN … PRIVATE KEY` to the end line, or to the end of the text where it was cut off. */
function pemKeys(text: string): Range[] {
  const found: Range[] = [];
  for (let at = text.indexOf(BEGIN); at >= 0; at = text.indexOf(BEGIN, at + BEGIN.length)) {
    const label = text.slice(at + BEGIN.length, at + BEGIN.length + 40);
    const kind = /^[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----/.exec(label)?.[0];
    if (kind === undefined) continue;
    const stop = text.indexOf(`-----END ${kind}`, at);
    const end = stop < 0 ? text.length : stop + 9 + kind.length;
    found.push({ start: at, end });
    at = end - BEGIN.length;
  }
  return found;
}

/** The password of `scheme://user:password@host`. */
function urlPasswords(runs: Runs): Range[] {
  const { text } = runs;
  const found: Range[] = [];
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    const limit = Math.min(text.length, at + 3 + 512);
    let colon = -1;
    for (let i = at + 3; i < limit; i++) {
      const c = text.charCodeAt(i);
      runs.steps++;
      if (c === 0x40) {
        if (colon > 0 && i > colon + 1 && !isPlaceholder(text.slice(colon + 1, i)))
          found.push({ start: colon + 1, end: i });
        break;
      }
      if (
        c <= 0x20 ||
        c === 0x2f ||
        c === 0x22 ||
        c === 0x27 ||
        c === 0x60 ||
        c === 0x3c ||
        c === 0x3e ||
        c === 0x5c ||
        c === 0x3f ||
        c === 0x23
      )
        break;
      if (c === 0x3a && colon < 0) colon = i;
    }
  }
  return found;
}

/** Words that stand where a secret would: variables, templates, examples. */
const PLACEHOLDER =
  /^(?:\$|<|\{|%|@|#|\*+$|x{3,}$|\.{2,}|your|my[_-]|example|changeme|change[_-]me|placeholder|redacted|dummy|todo|none$|null$|nil$|true$|false$|undefined$|string$|password$|passwd$|secret$|token$|process\.env|import\.meta|os\.|env[.[(]|secrets\.|var\.|\[secret\])/i;

export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}
