/** Services of the system without which programs do not start or find no user, no time zone, no certificates that are trusted. */
const SERVICES = [
  'com.apple.system.opendirectoryd.libinfo',
  'com.apple.system.opendirectoryd.membership',
  'com.apple.system.notification_center',
  'com.apple.system.logger',
  'com.apple.logd',
  'com.apple.SecurityServer',
  'com.apple.trustd',
  'com.apple.trustd.agent',
  'com.apple.FSEvents',
];

/** Devices that any program may need, besides what may be read. */
const DEVICES = [
  '/dev/null',
  '/dev/zero',
  '/dev/tty',
  '/dev/ptmx',
  '/dev/stdin',
  '/dev/stdout',
  '/dev/stderr',
  '/dev/dtracehelper',
];

/** What holds whatever the rules say: own processes, facts about the machine, terminals of its own. No service that opens anything. */
export const BASE: readonly string[] = [
  '(version 1)',
  '(deny default)',
  '(allow process-fork)',
  '(allow process-info* (target same-sandbox))',
  '(allow signal (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow system-socket)',
  '(allow ipc-posix-sem)',
  '(allow pseudo-tty)',
  `(allow mach-lookup ${SERVICES.map((name) => `(global-name "${name}")`).join(' ')})`,
  `(allow file-read* file-write-data file-ioctl ${DEVICES.map((path) => `(literal "${path}")`).join(' ')})`,
  '(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))',
  // Terminals that the session makes itself: the kernel says which they are.
  '(allow file-read* file-write* file-ioctl (require-all (regex "^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))',
  // Servers inside: they are reached from this machine alone.
  '(allow network-bind (local tcp "localhost:*"))',
  '(allow network-inbound (local tcp "localhost:*"))',
];
