/** What the `postgres` driver is called with: `postgres(connectOptions(url))`. */
export interface ConnectOptions {
  host: string;
  port: number;
  username: string;
  password?: string;
  database: string;
  /** `sslmode` of the URL, where it asks for TLS. */
  ssl?: 'require' | 'prefer' | 'verify-full';
}

/**
 * Reads a connection URL as libpq does, which the driver by itself does not: a host that begins with `/` (percent-encoded,
 * or as the parameter `host`) is the folder of a Unix socket. Throws a TypeError that does not repeat the password.
 */
export function connectOptions(text: string): ConnectOptions {
  const parts =
    /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^:/?]*)(?::(\d+))?(?:\/([^?]*))?(?:\?(.*))?$/.exec(text);
  if (parts === null)
    throw new TypeError('not a PostgreSQL URL: it must look like postgres://user:password@host:5432/database');
  const decode = (part: string | undefined): string => decodeURIComponent(part ?? '');
  const query = new URLSearchParams(parts[6] ?? '');
  const username = decode(parts[1]) || (query.get('user') ?? 'postgres');
  const password = decode(parts[2]) || query.get('password');
  const mode = query.get('sslmode');
  return {
    host: decode(parts[3]) || (query.get('host') ?? 'localhost'),
    port: Number(parts[4] ?? query.get('port') ?? 5432),
    username,
    ...(password === null || password === '' ? {} : { password }),
    database: decode(parts[5]) || username,
    ...(mode === 'require' || mode === 'prefer' || mode === 'verify-full' ? { ssl: mode } : {}),
  };
}
