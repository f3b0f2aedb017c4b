// Attempts to widen a session from inside: that is for a person, in another terminal.
import { BIN } from '../recorder/start.js';
import { attack, type Attack } from './attack.js';
import { ASKED } from './widening.js';

const ALLOWED = { wanted: [{ right: 'net', what: `by-socket.${ASKED}`, below: false, raw: false }] };

export const WIDENING: readonly Attack[] = [
  attack(
    'sockets.pathname',
    'widen-by-socket',
    'grant itself a host by a session’s control socket',
    (w) => ['control', w.session?.path, JSON.stringify({ ...ALLOWED, for: 'session', yes: true })],
    (w) => w.session?.has(`by-socket.${ASKED}`) === true,
  ),
  attack(
    'sockets.pathname',
    'widen-by-nd7',
    'type nd7 allow',
    (w) => ['nd7', BIN, w.session?.home, 'allow', '--yes', 'net', `by-nd7.${ASKED}`],
    (w) => w.session?.has(`by-nd7.${ASKED}`) === true,
  ),
  attack(
    'files.write',
    'write-after-grant',
    'write where a grant has let it, when that has ended',
    (w) => ['after', w.at('project', 'granted/mark'), 'write', w.at('outside', 'granted/new')],
    (w) => w.isThere('outside', 'granted/new'),
  ),
];
