// Bodies: collected as bytes (a machine's signature covers the bytes as sent), bounded by the route, then read by the route's schema.
import { Injectable, type PipeTransform } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { Problem } from './problem.js';
import { routeOf } from './route.js';

/** Takes every body as a Buffer, refusing before memory is spent: by its declared length first, by what came in any case. */
export function acceptBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', (request, payload, done) => {
    const limit = routeOf(request)?.limit ?? 0;
    const tooLarge = (): Problem =>
      new Problem('too-large', `this route takes at most ${String(limit)} bytes`, {}, { connection: 'close' });
    const declared = Number(request.headers['content-length'] ?? 0);
    if (declared > limit) {
      done(tooLarge());
      return;
    }
    const chunks: Buffer[] = [];
    let length = 0;
    payload.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) {
        chunks.length = 0;
        payload.removeAllListeners('data');
        payload.pause();
        done(tooLarge());
      } else chunks.push(chunk);
    });
    payload.once('end', () => {
      if (length <= limit) done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length));
    });
    payload.once('error', () => done(new Problem('bad-request', 'the connection ended before the body did')));
  });
}

/** The body's bytes; empty where there is none. */
export function bodyBytes(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** A pipe that reads JSON bytes, or query parameters, by a schema of the contract. */
@Injectable()
export class Valid<T> implements PipeTransform<unknown, T> {
  constructor(private readonly schema: z.ZodType<T>) {}

  transform(value: unknown): T {
    const result = this.schema.safeParse(
      value === undefined ? undefined : Buffer.isBuffer(value) ? jsonOf(value) : value,
    );
    if (result.success) return result.data;
    const lines = result.error.issues
      .slice(0, 5)
      .map((issue) => `${issue.path.map(String).join('.') || 'the body'}: ${issue.message}`);
    throw new Problem('bad-request', lines.join('; '));
  }
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    throw new Problem('bad-request', 'the body is not JSON in UTF-8');
  }
}
