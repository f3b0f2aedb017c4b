/* A /dev of our own: the harmless nodes, pseudo-terminals that see only each other, and the session's terminal under its own name. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *const NODES[] = {"null", "zero", "full", "random", "urandom", "tty"};
#define NODE_COUNT (sizeof NODES / sizeof *NODES)

void devices_take(struct devices *devices) {
  char path[64];
  for (size_t i = 0; i < NODE_COUNT; i++) {
    snprintf(path, sizeof path, "/dev/%s", NODES[i]);
    devices->nodes[i] = tree_clone(path, false);
  }
  devices->terminal = devices->terminal_index = -1;
  for (int fd = 0; fd < 3 && devices->terminal < 0; fd++) {
    if (!isatty(fd) || ttyname_r(fd, devices->terminal_path, sizeof devices->terminal_path) != 0) continue;
    const int at = path_open(devices->terminal_path);
    if (at < 0) continue;
    close(at);
    devices->terminal = tree_clone(devices->terminal_path, false);
    char *end;
    if (strncmp(devices->terminal_path, "/dev/pts/", 9) == 0) {
      const long index = strtol(devices->terminal_path + 9, &end, 10);
      if (*end == '\0' && index >= 0 && index < 1 << 20) devices->terminal_index = (int)index;
    }
  }
}

/* A node of the host: what is written goes to the device; its mode and times, which root inside owns too, stay. */
static void place_node(int tree, const char *path) {
  tree_set(tree, "", K_ATTR_RDONLY, 0, false);
  tree_attach(tree, path);
}

/* Makes pseudo-terminals until one has the number of the session's terminal, so that it can lie under its own name. That one stays open as long as the
 * session; the others go. Numbers that need more descriptors than there are: the terminal stays without a name, /dev/tty works. */
static void place_terminal(const struct devices *devices) {
  const int wanted = devices->terminal_index;
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)wanted + 64 > limit.rlim_cur) return;
  int *held = calloc((size_t)wanted + 1, sizeof *held);
  if (held == NULL) return;
  int count = 0, found = -1;
  while (found < 0 && count <= wanted) {
    const int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    unsigned number = 0;
    if (master < 0 || ioctl(master, TIOCGPTN, &number) != 0) break;
    if ((int)number == wanted) found = master;
    else held[count++] = master;
  }
  while (count > 0) close(held[--count]);
  free(held);
  if (found >= 0) place_node(devices->terminal, devices->terminal_path);
}

static void link_name(const char *to, const char *name) {
  if (symlink(to, name) != 0) fail("devices", name);
}

void devices_place(struct devices *devices) {
  char path[64];
  const int tree = tree_scratch("/dev", 0755, 1, 64);
  tree_attach(tree, "/dev");
  close(tree);
  for (size_t i = 0; i < NODE_COUNT; i++) {
    snprintf(path, sizeof path, "/dev/%s", NODES[i]);
    place_node(devices->nodes[i], path);
    close(devices->nodes[i]);
  }
  if (mkdir("/dev/pts", 0755) != 0 || mkdir("/dev/shm", 0755) != 0) fail("devices", "/dev");
  if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") != 0) fail("devices", "/dev/pts");
  link_name("pts/ptmx", "/dev/ptmx");
  link_name("/proc/self/fd", "/dev/fd");
  link_name("/proc/self/fd/0", "/dev/stdin");
  link_name("/proc/self/fd/1", "/dev/stdout");
  link_name("/proc/self/fd/2", "/dev/stderr");
  if (devices->terminal >= 0) {
    /* A terminal that is no pseudo-terminal, such as a console, gets a node of its own. */
    if (devices->terminal_index >= 0) place_terminal(devices);
    else place_node(devices->terminal, devices->terminal_path);
    close(devices->terminal);
  }
  tree_set(AT_FDCWD, "/dev", K_ATTR_RDONLY, 0, false);
}
