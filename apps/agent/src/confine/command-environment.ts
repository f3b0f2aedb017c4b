// The environment of a command that is run for an agent: what the one who asked had, without what makes a program load code before it does anything.

/** Variables by which a shell, the dynamic loader or an interpreter that a shell starts runs code that no command names. */
const LOADS =
  /^(LD_.*|GLIBC_TUNABLES|GCONV_PATH|BASH_ENV|ENV|ZDOTDIR|SHELLOPTS|BASHOPTS|PS4|BASH_FUNC_.*|__BASH_FUNC<.*)$/;

export interface CommandEnvironment {
  environment: Buffer[];
  /** Names of variables that were there and are not given. */
  leftOut: string[];
}

/**
 * `asked` is the block of /proc/PID/environ; `session` what the agent's process was given, whose own values of those variables hold. Where the shell
 * is named as what stands for it, it is named as it is. A name twice is taken as its first: programs do.
 */
export function commandEnvironment(
  asked: Uint8Array,
  session: Readonly<Record<string, string>>,
  names: { stub: string; shell: string },
): CommandEnvironment {
  const environment: Buffer[] = [];
  const leftOut: string[] = [];
  const seen = new Set<string>();
  for (const variable of split(asked)) {
    const at = variable.indexOf('=');
    // Not of the form that the kernel's own callers give; a shell would not see it either.
    if (at <= 0) continue;
    const name = variable.toString('latin1', 0, at);
    const value = variable.toString('utf8', at + 1);
    if (seen.has(name)) continue;
    seen.add(name);
    if (LOADS.test(name)) {
      if (session[name] !== value) leftOut.push(name);
    } else if (name === 'SHELL' && value === names.stub) environment.push(Buffer.from(`SHELL=${names.shell}`));
    else environment.push(variable);
  }
  for (const [name, value] of Object.entries(session))
    if (LOADS.test(name)) environment.push(Buffer.from(`${name}=${value}`));
  return { environment, leftOut };
}

function split(block: Uint8Array): Buffer[] {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(0, at);
    // The kernel shows what the process has made of its block: what has no end is no variable.
    if (end < 0) break;
    if (end > at) found.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return found;
}
