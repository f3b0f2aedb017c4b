// `nd7-vault`: the service and what its operator does.
import { runCli } from './cli/program.js';

process.exitCode = await runCli(process.argv.slice(2), process.env);
