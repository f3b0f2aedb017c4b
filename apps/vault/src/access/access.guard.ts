import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Access } from './access.js';

/** The second half of access: a machine's signature covers the body, so it is checked once the body is there. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(private readonly access: Access) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    if (request.machine !== undefined) await this.access.authenticate(request, request.machine);
    return true;
  }
}
