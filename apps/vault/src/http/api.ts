// Controllers take method, path, access and body limit from the one table of routes in @nd7/vault-api.
import { applyDecorators, Get, Post, Put, UseGuards } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ROUTES, type Route, type RouteName } from '@nd7/vault-api';
import { AccessGuard } from '../access/access.guard.js';

const VERBS = { GET: Get, PUT: Put, POST: Post };

/** Binds a controller method to a route of the contract. */
export function Api(name: RouteName): MethodDecorator {
  const route: Route = ROUTES[name];
  const path = route.path.replace('{path}', '*').replaceAll(/\{([a-z_]+)\}/g, ':$1');
  return applyDecorators(VERBS[route.method](path), RouteConfig({ nd7: name }), UseGuards(AccessGuard));
}
