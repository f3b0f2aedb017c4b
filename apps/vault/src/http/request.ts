// What the access layer knows of a request, beside Fastify's own members.
export interface MachineIdentity {
  team: string;
  /** Public key, 64 hex. */
  machine: string;
}

export interface ReaderIdentity {
  team: string;
  /** Opaque id, `u_<32 hex>`. */
  reader: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set once the token is known; the request's signature is checked by AccessGuard before a handler runs. */
    machine?: MachineIdentity;
    reader?: ReaderIdentity;
    /** Gives the place of a segment in work back (http/admission.ts). */
    releasePlace?: () => void;
  }
}
