import type { PolicyDocument } from '../document.js';
import { AGENTS } from './agents.js';
import { FORGES, PROFILES } from './profiles.js';
import { TOOLCHAINS } from './toolchains.js';

export interface Builtin {
  layer: 'profile' | 'pack';
  document: PolicyDocument;
}

const all = (layer: Builtin['layer'], documents: Readonly<Record<string, PolicyDocument>>): [string, Builtin][] =>
  Object.entries(documents).map(([name, document]) => [name, { layer, document }]);

/** Everything that nd7 brings, by the name that `extends`, `packs` and `--profile` use. */
export const BUILTINS: ReadonlyMap<string, Builtin> = new Map([
  ...all('profile', PROFILES),
  ...all('pack', { ...TOOLCHAINS, ...FORGES, ...AGENTS }),
]);

export { REFUSED, RECORDED, PACKAGE_FOLDERS } from './protected.js';
export { SOCKETS, type NamedSocket } from './sockets.js';
