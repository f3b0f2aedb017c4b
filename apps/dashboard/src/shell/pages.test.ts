import { documentTitle, pageAbove } from './pages.js';

const session = `/machines/${'a'.repeat(64)}/sessions/7962b8a7-023b-40fb-9811-7b65c6241179`;

it.each([
  ['/sessions', 'Sessions · nd7', undefined],
  [session, 'Session 7962b8a7…241179 · nd7', '/sessions'],
  [`${session}/verification`, 'Verification of 7962b8a7…241179 · nd7', session],
  ['/incidents/INC-142', 'Incident INC-142 · nd7', '/incidents'],
  ['/incidents/%E0%A4%A', 'Incident %E0%A4%A · nd7', '/incidents'],
  ['/elsewhere', 'nd7', undefined],
])('%s', (path, title, above) => {
  expect([documentTitle(path), pageAbove(path)]).toEqual([title, above]);
});
