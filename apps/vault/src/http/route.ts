import { ROUTES, type Route, type RouteName } from '@nd7/vault-api';
import type { FastifyRequest } from 'fastify';

/** The route of the contract that a request was bound to by `@Api`, if any (static files and health have none). */
export function routeOf(request: FastifyRequest): (Route & { name: RouteName }) | undefined {
  const name = (request.routeOptions.config as { nd7?: RouteName } | undefined)?.nd7;
  return name === undefined ? undefined : { ...(ROUTES[name] as Route), name };
}
