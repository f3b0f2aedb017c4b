/** Sockets that have a name: where they lie, and what letting somebody in means. */
export interface NamedSocket {
  /** Variable of the environment outside that says where it lies; null where none does. */
  variable: string | null;
  /** Where it lies otherwise; `$XDG_RUNTIME_DIR` stands for that variable, without which such a place does not exist. */
  paths: readonly string[];
  warning: string;
}

export const SOCKETS: Readonly<Record<string, NamedSocket>> = {
  'ssh-agent': {
    variable: 'SSH_AUTH_SOCK',
    paths: [],
    warning: 'who reaches it can log in wherever your keys open, for as long as the session lasts',
  },
  'gpg-agent': {
    variable: null,
    paths: ['$XDG_RUNTIME_DIR/gnupg/S.gpg-agent', '~/.gnupg/S.gpg-agent'],
    warning: 'who reaches it can sign and decrypt with your keys while they are unlocked',
  },
  docker: {
    variable: 'DOCKER_HOST',
    paths: ['/run/docker.sock', '/var/run/docker.sock'],
    warning:
      'this is root on this machine: a container can mount and change everything, outside the boundary and unrecorded',
  },
  podman: {
    variable: 'CONTAINER_HOST',
    paths: ['$XDG_RUNTIME_DIR/podman/podman.sock'],
    warning: 'a container can mount and change all your files, outside the boundary and unrecorded',
  },
  'dbus-session': {
    variable: null,
    paths: ['$XDG_RUNTIME_DIR/bus'],
    warning: 'the session’s service manager starts programs outside the boundary for whoever asks on this bus',
  },
  wayland: {
    variable: null,
    paths: ['$XDG_RUNTIME_DIR/wayland-0', '$XDG_RUNTIME_DIR/wayland-1'],
    warning: 'programs inside can show windows and, with some compositors, read the screen and the clipboard',
  },
  x11: {
    variable: null,
    paths: ['/tmp/.X11-unix/X0', '/tmp/.X11-unix/X1'],
    warning: 'X11 lets every client read all keys, windows and the clipboard, and type into other windows',
  },
};
