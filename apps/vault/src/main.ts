// The service as a process: signals in, exit code out.
import { ConfigError, VaultConfig } from './config.js';
import { GuardError } from './db/boot-check.js';
import { Log } from './log/log.js';
import { startVault } from './server.js';

/** Runs the vault until SIGTERM or SIGINT; resolves with the exit code. */
export async function serve(env: NodeJS.ProcessEnv): Promise<number> {
  let config: VaultConfig;
  try {
    config = new VaultConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.lines) process.stderr.write(`${line}\n`);
    return 2;
  }
  const log = new Log(config.logLevel);
  try {
    const vault = await startVault({ config, log });
    await new Promise<void>((done) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => done());
    });
    log.info('vault stops: no new requests, those in work are finished');
    await vault.close();
    return 0;
  } catch (error) {
    if (error instanceof GuardError) for (const line of error.lines) process.stderr.write(`${line}\n`);
    else log.error('vault cannot start', { error });
    return 1;
  }
}
