// Configuration by environment. Every value is checked at start; each bad one gets one line that says what it must be.
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { connectOptions } from '@nd7/postgres';
import { z } from 'zod';

/** Bad configuration: what `nd7-vault` prints, one line per value, before it exits with 2. */
export class ConfigError extends Error {
  readonly code = 'config' as const;
  constructor(readonly lines: readonly string[]) {
    super(lines.join('\n'));
  }
}

const whole = (min: number, max: number): z.ZodCoercedNumber => {
  const error = `must be a whole number from ${String(min)} to ${String(max)}`;
  return z.coerce.number({ error }).int(error).min(min, error).max(max, error);
};
const folder = z.string().min(1);
const url = z.string().refine((text) => {
  try {
    connectOptions(text);
    return true;
  } catch {
    return false;
  }
}, 'must look like postgres://user:password@host:5432/database');

// The origin `<name>/<team>` is at most 128 bytes and signed into every leaf: a name is never changed afterwards.
const vaultName = z
  .string()
  .regex(/^[a-z0-9.-]{1,64}$/, 'must be 1 to 64 of a-z, 0-9, dot and dash, such as vault.example.com');

const Environment = z.object({
  ND7_VAULT_NAME: vaultName,
  ND7_DATABASE_URL: url,
  ND7_DATABASE_OWNER_URL: url.optional(),
  ND7_DATABASE_POOL: whole(2, 200).default(10),
  ND7_VAULT_KEYS: folder,
  ND7_VAULT_HOST: z.string().min(1).default('127.0.0.1'),
  ND7_VAULT_PORT: whole(0, 65_535).default(4170),
  ND7_VAULT_PUBLIC_URL: z
    .url({ protocol: /^https?$/, error: 'must be the http or https URL that readers use' })
    .optional(),
  ND7_DASHBOARD_DIR: folder.optional(),
  ND7_VAULT_SIGNER_STATE: folder.optional(),
  ND7_VAULT_SIGNER_SOCKET: folder.optional(),
  ND7_VAULT_MAX_INGESTS: whole(1, 1024).default(32),
  ND7_VAULT_THREADS: whole(0, 64).optional(),
  ND7_VAULT_METRICS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
  ND7_VAULT_WATCH_EVERY: whole(1, 3600).default(30),
  ND7_VAULT_QUIET_AFTER: whole(2, 1000).default(3),
  ND7_VAULT_SESSION_LAG: whole(10, 86_400).default(300),
  ND7_VAULT_SESSION_GRACE: whole(10, 2_592_000).default(3600),
  ND7_VAULT_AWAY_LIMIT: whole(60, 31_536_000).default(604_800),
  // Beyond 300 s no request of the machine is taken (REQUEST_WINDOW of @nd7/segment).
  ND7_VAULT_CLOCK_TOLERANCE: whole(1, 300).default(120),
  ND7_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'], 'must be debug, info, warn, error or silent')
    .default('info'),
});

/** When silence is an incident; docs/operate.md has each with its setting. Times in milliseconds. */
export interface Patience {
  /** The watch looks so often. */
  every: number;
  /** A machine is quiet when it missed so many of its own intervals. */
  quietAfter: number;
  /** A session is quiet when entries that its machine named have not come for so long. */
  sessionLag: number;
  /** A session without a close is lost when nobody has vouched for it for so long. */
  sessionGrace: number;
  /** An announced sleep counts for so long; so does the silence of a machine that sends no heartbeats. */
  awayLimit: number;
  /** A machine's clock may differ by so much. */
  clockTolerance: number;
}

/** What the vault runs with. Values come from the environment; see infra/postgres/README.md for the two database URLs. */
export class VaultConfig {
  /** First half of every origin. */
  readonly name: string;
  /** Where the service logs in; it acts as the role nd7_app whatever that user is. */
  readonly databaseUrl: string;
  /** Where migrations log in. */
  readonly ownerUrl: string;
  readonly pool: number;
  /** Folder of key files (0700), never in the database nor in its backups. */
  readonly keys: string;
  readonly host: string;
  readonly port: number;
  /** Base URL without a trailing slash, when it is known before the port is. */
  readonly publicUrl: string | undefined;
  readonly dashboardDir: string;
  /** Folder of the signer's own durable state. */
  readonly signerState: string;
  /** Socket of a signer that runs as its own process; undefined: the signer is embedded. */
  readonly signerSocket: string | undefined;
  /** Segments in work at once; more are answered 503. */
  readonly maxIngests: number;
  /** Threads that check segments; 0: they are checked in the thread that answers. */
  readonly threads: number;
  /** Bearer token that /metrics asks for; undefined: open. */
  readonly metricsToken: string | undefined;
  readonly patience: Patience;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';

  /** Throws ConfigError naming every bad value at once. */
  constructor(env: NodeJS.ProcessEnv) {
    const given = Object.fromEntries(
      Object.entries(env).filter(([key, value]) => key.startsWith('ND7_') && value !== ''),
    );
    const parsed = Environment.safeParse(given);
    if (!parsed.success)
      throw new ConfigError(parsed.error.issues.map((issue) => lineOf(String(issue.path[0]), issue.message, given)));
    const values = parsed.data;
    this.name = values.ND7_VAULT_NAME;
    this.databaseUrl = values.ND7_DATABASE_URL;
    this.ownerUrl = values.ND7_DATABASE_OWNER_URL ?? values.ND7_DATABASE_URL;
    this.pool = values.ND7_DATABASE_POOL;
    this.keys = resolve(values.ND7_VAULT_KEYS);
    this.host = values.ND7_VAULT_HOST;
    this.port = values.ND7_VAULT_PORT;
    this.publicUrl = values.ND7_VAULT_PUBLIC_URL?.replace(/\/+$/, '');
    this.dashboardDir = resolve(values.ND7_DASHBOARD_DIR ?? resolve(import.meta.dirname, '../../dashboard/dist'));
    this.signerState = resolve(values.ND7_VAULT_SIGNER_STATE ?? resolve(this.keys, 'signer'));
    this.signerSocket =
      values.ND7_VAULT_SIGNER_SOCKET === undefined ? undefined : resolve(values.ND7_VAULT_SIGNER_SOCKET);
    this.maxIngests = values.ND7_VAULT_MAX_INGESTS;
    // One processor is left to the thread that answers; with more than four, that one is what is waited for.
    this.threads = values.ND7_VAULT_THREADS ?? Math.min(4, availableParallelism() - 1);
    this.metricsToken = values.ND7_VAULT_METRICS_TOKEN;
    this.patience = {
      every: values.ND7_VAULT_WATCH_EVERY * 1000,
      quietAfter: values.ND7_VAULT_QUIET_AFTER,
      sessionLag: values.ND7_VAULT_SESSION_LAG * 1000,
      sessionGrace: values.ND7_VAULT_SESSION_GRACE * 1000,
      awayLimit: values.ND7_VAULT_AWAY_LIMIT * 1000,
      clockTolerance: values.ND7_VAULT_CLOCK_TOLERANCE * 1000,
    };
    this.logLevel = values.ND7_LOG_LEVEL;
  }
}

/** A URL may carry a password: it is never repeated. */
function lineOf(name: string, message: string, given: Record<string, string | undefined>): string {
  const value = given[name];
  if (value === undefined) return `${name} is not set`;
  return /URL|TOKEN/.test(name) ? `${name} ${message}` : `${name} is ${JSON.stringify(value)}: ${message}`;
}
