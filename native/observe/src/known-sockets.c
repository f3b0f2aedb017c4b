/* Which sockets a session without namespaces may connect to. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- sockets that may be connected to ------------------------------------------------------------------------------- */

struct known {
  dev_t device;
  ino_t number;
  int held; /* O_PATH: as long as it is open, nothing else gets this number; -1: it stands outside, and was there at the start */
  bool is_door;
};

#define KNOWN_MAX 4096u
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known known[KNOWN_MAX];
static size_t known_count;

void sockets_grant(const struct stat *s, bool is_door) {
  if (known_count < KNOWN_MAX) known[known_count++] = (struct known){s->st_dev, s->st_ino, -1, is_door};
}

/* Paths that mean the door: the one that it has, and where a registration of hooks looks for the recorder, whose own socket is nobody's inside. */
#define DOORS_MAX 4
static const char *doors[DOORS_MAX];
static size_t door_count;

void sockets_door(const char *path) {
  if (door_count < DOORS_MAX) doors[door_count++] = path;
}

/* In the folder of the plan's broker. */
static bool is_broker(const char *path) {
  static const char name[] = "/exec";
  const char *folder = observe.plan->broker;
  const size_t length = folder == NULL ? 0 : strlen(folder);
  return length > 0 && strncmp(path, folder, length) == 0 && strcmp(path + length, name) == 0;
}

enum own_socket sockets_own(const struct call *call, const char *path) {
  struct place *place = malloc(sizeof *place);
  enum own_socket found = OWN_NONE;
  if (place == NULL) return found;
  if (place_find(call, AT_FDCWD, path, place) == 0) {
    for (size_t i = 0; i < door_count && found == OWN_NONE; i++)
      if (strcmp(place->path, doors[i]) == 0) found = OWN_DOOR;
    if (found == OWN_NONE && is_broker(place->path)) found = OWN_BROKER;
  }
  place_close(place);
  free(place);
  return found;
}

/* A socket that the session has bound. Takes the descriptor over; false where there are too many. */
bool sockets_remember(int held, const struct stat *s) {
  struct stat now;
  bool done = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < known_count && !done; i++) {
    if (known[i].held < 0 || fstat(known[i].held, &now) != 0 || now.st_nlink > 0) continue;
    /* Its name has gone: nobody can connect to it by that. */
    close(known[i].held);
    known[i] = (struct known){s->st_dev, s->st_ino, held, false};
    done = true;
  }
  if (!done && known_count < KNOWN_MAX) {
    known[known_count++] = (struct known){s->st_dev, s->st_ino, held, false};
    done = true;
  }
  pthread_mutex_unlock(&lock);
  if (!done) close(held);
  return done;
}

bool sockets_know(const struct stat *s, bool *is_door) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < known_count && !found; i++)
    if (known[i].device == s->st_dev && known[i].number == s->st_ino) {
      found = true;
      *is_door = known[i].is_door;
    }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Listeners of the session on the loopback that everybody has: by the number of the socket, which /proc/net/tcp has too. */
#define OWN_LISTENERS_MAX 1024u
static struct {
  uint16_t port;
  ino_t number;
} listeners[OWN_LISTENERS_MAX];
static size_t listener_next;

void sockets_listen_at(uint16_t port, ino_t number) {
  pthread_mutex_lock(&lock);
  listeners[listener_next++ % OWN_LISTENERS_MAX].port = port;
  listeners[(listener_next - 1) % OWN_LISTENERS_MAX].number = number;
  pthread_mutex_unlock(&lock);
}

static bool is_own_listener(uint16_t port, ino_t number) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < OWN_LISTENERS_MAX && !found; i++) found = listeners[i].port == port && listeners[i].number == number;
  pthread_mutex_unlock(&lock);
  return found;
}

/* Whether all that listens on a port is the session's own, and something does. */
static bool count_listeners(const char *table, uint16_t port, size_t *own) {
  char line[512];
  const int fd = openat(observe.proc, table, O_RDONLY | O_CLOEXEC);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  bool others = false;
  if (file == NULL) return true;
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned at, state;
    unsigned long number;
    /* sl local:port remote:port state queues timer retransmits uid timeout inode */
    if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*d %lu", &at, &state, &number) != 3 || at != port || state != 0x0a) continue;
    if (is_own_listener(port, (ino_t)number)) ++*own;
    else others = true;
  }
  fclose(file);
  return !others;
}

bool sockets_own_port(uint16_t port) {
  size_t own = 0;
  return count_listeners("self/net/tcp", port, &own) && count_listeners("self/net/tcp6", port, &own) && own > 0;
}

bool sockets_served(uint16_t port) {
  for (size_t i = 0; i < observe.plan->listener_count; i++)
    if (observe.plan->listeners[i].port == port) return true;
  return false;
}
