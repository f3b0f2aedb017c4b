import { Controller, Param, Req, Res } from '@nestjs/common';
import { parseTilePath, TILE_WIDTH } from '@nd7/tlog';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Api } from '../http/api.js';
import { Problem } from '../http/problem.js';
import { TileReader } from './tile-reader.js';

/**
 * The log over HTTP. Access is the routes' (a reader of the team, everybody where the log is public); a cache between is told to keep what
 * needs a token to itself.
 */
@Controller()
export class TilesController {
  constructor(private readonly tiles: TileReader) {}

  @Api('checkpoint')
  async checkpoint(
    @Param('team') team: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const note = await this.tiles.checkpoint(team);
    if (note === undefined) throw new Problem('not-found', 'the log has no checkpoint yet');
    await reply
      .type('text/plain; charset=utf-8')
      .header('cache-control', `${scope(request)}, no-cache`)
      .send(note);
  }

  @Api('tile')
  async tile(
    @Param('team') team: string,
    @Param('*') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const address = parseTilePath(`tile/${path}`);
    const bytes = address === undefined ? undefined : await this.tiles.tile(team, address);
    if (address === undefined || bytes === undefined)
      throw new Problem('not-found', 'the published tree has no such tile');
    // A tile of a given width never changes, but a reader has no use for a narrow one once there is a wider.
    const age = address.width === TILE_WIDTH ? 'max-age=31536000, immutable' : 'max-age=3600, immutable';
    await reply
      .type('application/octet-stream')
      .header('cache-control', `${scope(request)}, ${age}`)
      .send(Buffer.from(bytes));
  }
}

/** Of a log that is not public, only the reader's own cache may keep anything. */
function scope(request: FastifyRequest): string {
  return request.reader === undefined ? 'public' : 'private';
}
