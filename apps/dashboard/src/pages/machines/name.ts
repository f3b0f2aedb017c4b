import { shortHash } from '../../ui/short-hash.js';

/**
 * What a machine is called: the name it was enrolled under, with the beginning of its key where another machine bears the same name. `otherwise` where it is
 * not among them.
 */
export function machineName(
  machine: string,
  machines: readonly { machine: string; name: string }[],
  otherwise = shortHash(machine),
): string {
  const name = machines.find((one) => one.machine === machine)?.name ?? otherwise;
  const isShared = machines.some((one) => one.name === name && one.machine !== machine);
  return isShared ? `${name} ${machine.slice(0, 8)}` : name;
}
