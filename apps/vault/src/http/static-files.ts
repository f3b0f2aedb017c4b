// Files of a folder that this program was given, by names without surprises. No listing, no ranges, no dot files.
import { createReadStream, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
  '.map': 'application/json; charset=utf-8',
};

/** `/name/name.ext`: no segment begins with a dot, so that none is `..`. */
const NAME = /^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

/** Answers with the file at `path` (which begins with `/`) below `folder`, or gives false where there is none. */
export function sendFile(request: FastifyRequest, reply: FastifyReply, folder: string, path: string): boolean {
  const type = TYPES[extname(path)];
  if (type === undefined || !NAME.test(path)) return false;
  const file = join(folder, path);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) return false;
  const tag = `W/"${stat.size.toString(16)}-${Math.trunc(stat.mtimeMs).toString(16)}"`;
  void reply.header('etag', tag).header('content-type', type);
  if (request.headers['if-none-match'] === tag) void reply.status(304).send();
  else void reply.header('content-length', stat.size).send(createReadStream(file));
  return true;
}
