import { readFileSync } from 'node:fs';
import type { Ports } from '../plan.js';

/** Each of them alone. */
export const portsOf = (ports: readonly number[]): Ports[] =>
  [...new Set(ports)].map((port) => ({ first: port, last: port, step: 1 }));

/**
 * Those that the kernel gives to a server that asks for none: of its range every second, since it keeps the others for connections as long as
 * it can (`inet_csk_find_open_port`).
 */
export function serverPorts(): Ports {
  const [low = 32_768, high = 60_999] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    .trim()
    .split(/\s+/)
    .map(Number);
  return { first: Math.min(low + 1, high), last: high, step: 2 };
}
