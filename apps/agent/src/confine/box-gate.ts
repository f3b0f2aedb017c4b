// Where a box's first process says that it is there. What an engine runs is no child of nd7's: which process it is, the engine tells, and the
// kernel says of who came to the gate that it is that one's. Nothing is heard from the container before.
import { chmodSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { peerOfSocket, processFacts, socketAddress, type Peer } from '@nd7/kernel';
import { CliError } from '../cli/io.js';
import { lineage } from '../recorder/inside.js';
import type { Client } from '../recorder/peer.js';
import { DOOR } from './door.js';
import type { EngineKind } from './box-engine.js';

const NAME = 'gate';
/** `nd7-box` is told so where the gate is; the second leaves signals to nd7. */
export const GATE_WORD = `gate=${DOOR}/${NAME}`;
export const HOLD_WORD = `hold=${DOOR}/${NAME}`;

/** Below which process everything is the container's. Throws `CliError` where the kernel does not say that of who spoke. */
export function firstOf(kind: EngineKind | 'bwrap', peer: Peer, told: number): Client {
  const refuse = (why: string): never => {
    throw new CliError(
      2,
      `${why}: nd7 could not tell who speaks from inside`,
      `docs/limits.md, "In a container", says which engines can be used.`,
      'open-box',
    );
  };
  if (peer.pid === 0)
    return refuse(
      'the container’s processes cannot be seen from here: they are in a virtual machine or beside nd7’s own container',
    );
  if (peer.uid !== process.geteuid?.())
    return refuse(`the container’s programs have another user (${peer.uid}) outside: the engine maps users`);
  const facts = processFacts(told);
  if (facts === undefined) return refuse(`the engine says that the container is process ${told}, and there is none`);
  const first = { pid: facts.pid, start: facts.start };
  // An engine that tells a process of this machine's would have all below it heard.
  if (lineage(process.pid, first) !== undefined)
    return refuse(`the engine says that the container is process ${told}, and nd7 is below that itself`);
  if (lineage(peer.pid, first) !== undefined) return first;
  // gVisor has one process for all that runs in it, which its runtime's monitor has started.
  const above = kind === 'gvisor' ? processFacts(facts.parent) : undefined;
  const monitor = above && above.pid > 1 ? { pid: above.pid, start: above.start } : undefined;
  if (monitor !== undefined && lineage(process.pid, monitor) === undefined && lineage(peer.pid, monitor) !== undefined)
    return monitor;
  return refuse(`process ${peer.pid} came from the container, which is not below ${told} as the engine says`);
}

export interface GateOptions {
  kind: EngineKind | 'bwrap';
  /** The box's first process, as who makes it tells. Throws where it tells none. */
  told: () => Promise<number>;
  /** Below `first` everything is the box's; `program` is the process that becomes the program. */
  admitted: (first: Client, program: number) => void;
  refused: (error: unknown) => void;
  /** The program has been stopped. */
  stopped?: () => void;
}

export class Gate {
  readonly #server: Server;
  readonly #address: { path: string; close(): void };
  /** As long as these are held the box lives. */
  readonly #held = new Set<Socket>();
  #admission: Promise<boolean> | undefined;

  private constructor(
    folder: string,
    private readonly options: GateOptions,
  ) {
    this.#address = socketAddress(folder, NAME);
    this.#server = createServer((socket) => void this.#came(socket));
  }

  static async open(folder: string, options: GateOptions): Promise<Gate> {
    const gate = new Gate(folder, options);
    gate.#server.listen({ path: gate.#address.path, backlog: 16 });
    await once(gate.#server, 'listening');
    chmodSync(join(folder, NAME), 0o600);
    return gate;
  }

  /** Ends the box, where it is still there. */
  close(): void {
    this.#server.close();
    for (const socket of this.#held) socket.destroy();
    this.#address.close();
  }

  /** The first who comes is process 1 and only holds; the second becomes the program, and waits for the word. Nobody else has anything to say here. */
  async #came(socket: Socket): Promise<void> {
    socket.on('error', () => undefined).once('close', () => this.#held.delete(socket));
    if (this.#held.size === 2 || this.#admission !== undefined) return void socket.destroy();
    this.#held.add(socket);
    if (this.#held.size === 1) return void socket.on('data', () => this.options.stopped?.());
    socket.resume();
    this.#admission = this.#admit(socket);
    if (await this.#admission) socket.write('y');
    else this.close();
  }

  async #admit(socket: Socket): Promise<boolean> {
    const { kind, told, admitted, refused } = this.options;
    try {
      const peer = peerOfSocket(socket);
      admitted(firstOf(kind, peer, await told()), peer.pid);
      return true;
    } catch (error) {
      refused(error);
      return false;
    }
  }
}
