import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { problemDocument, type ProblemCode } from '@nd7/vault-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Log } from '../log/log.js';
import { busy, Problem } from './problem.js';

/** Turns whatever was thrown into one problem document. What a client may not know is logged and answered 500 without a word of it. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly log: Log) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    sendProblem(reply, this.problemOf(thrown, request));
  }

  private problemOf(thrown: unknown, request: FastifyRequest): Problem {
    const known = knownProblem(thrown);
    if (known !== undefined) return known;
    this.log.error('request failed', { method: request.method, route: request.routeOptions.url, error: thrown });
    return new Problem('internal', 'the vault failed; its log has the details');
  }
}

/** Answers a problem; also for hooks that run before Nest does. */
export function sendProblem(reply: FastifyReply, problem: Problem): void {
  void reply
    .status(problem.status)
    .headers(problem.headers)
    .header('content-type', 'application/problem+json')
    .header('cache-control', 'no-store')
    // Bytes, not text: Fastify would add a charset, which JSON has none of.
    .send(Buffer.from(JSON.stringify(problemDocument(problem.code, problem.detail, problem.extra))));
}

const BY_STATUS: Partial<Record<number, ProblemCode>> = {
  400: 'bad-request',
  404: 'not-found',
  413: 'too-large',
  415: 'bad-request',
};

/** A Problem, or what other layers throw that is a refusal rather than a failure. */
export function knownProblem(thrown: unknown): Problem | undefined {
  if (thrown instanceof Problem) return thrown;
  const { code, statusCode, message } = thrown as { code?: unknown; statusCode?: unknown; message?: string };
  if (code === 'log-read-only')
    return new Problem('log-read-only', message ?? 'the log is read-only', {}, { 'retry-after': '60' });
  // The database is away or full: what was sent is not stored, and the client still has it.
  if (typeof code === 'string' && /^(CONNECT|CONNECTION_|ECONN|ENOENT|57P0|53)/.test(code))
    return busy('the database cannot be reached', 5);
  const status =
    thrown instanceof HttpException ? thrown.getStatus() : typeof statusCode === 'number' ? statusCode : 500;
  const as = BY_STATUS[status];
  return as === undefined
    ? undefined
    : new Problem(as, as === 'not-found' ? 'there is nothing at this path' : 'the request cannot be read');
}
