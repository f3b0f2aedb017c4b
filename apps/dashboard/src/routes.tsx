import { Shell } from './shell/Shell.js';
import { IncidentPage } from './pages/incidents/IncidentPage.js';
import { IncidentsPage } from './pages/incidents/IncidentsPage.js';
import { readIncidentsSearch } from './pages/incidents/search.js';
import { MachinesPage } from './pages/machines/MachinesPage.js';
import { NotFound } from './pages/NotFound.js';
import { SessionPage } from './pages/session/SessionPage.js';
import { readSessionSearch } from './pages/session/search.js';
import { readSessionsSearch } from './pages/sessions/search.js';
import { SessionsPage } from './pages/sessions/SessionsPage.js';
import { SignInPage } from './pages/sign-in/SignInPage.js';
import { VerificationPage } from './pages/verification/VerificationPage.js';
import { VerifyPage } from './pages/verify/VerifyPage.js';
import { createRootRoute, createRoute, createRouter, redirect } from './ui/router.js';

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/sessions' });
    },
  }),
  createRoute({ getParentRoute: () => root, path: '/sign-in', component: SignInPage }),
  createRoute({
    getParentRoute: () => root,
    path: '/sessions',
    component: SessionsPage,
    validateSearch: readSessionsSearch,
  }),
  createRoute({ getParentRoute: () => root, path: '/machines', component: MachinesPage }),
  createRoute({
    getParentRoute: () => root,
    path: '/machines/$machine/sessions/$session',
    component: SessionPage,
    validateSearch: readSessionSearch,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/machines/$machine/sessions/$session/verification',
    component: VerificationPage,
  }),
  createRoute({ getParentRoute: () => root, path: '/verify', component: VerifyPage }),
  createRoute({
    getParentRoute: () => root,
    path: '/incidents',
    component: IncidentsPage,
    validateSearch: readIncidentsSearch,
  }),
  createRoute({ getParentRoute: () => root, path: '/incidents/$id', component: IncidentPage }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: false,
  scrollRestoration: false,
  // Every value is a text: an id that looks like a number must stay one.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return text === '' ? '' : `?${text}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
