/* Sockets of a session that has a network of its own: which of those that have a path it may connect to. The others are all its own, or nd7's. */
#define _GNU_SOURCE
#include "sockets.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INT(index) ((int)(uint32_t)call->args[index])

/* Folders that are shown in places of their own: nobody but nd7 makes a name in them. */
#define OWN_MAX 16u
static const char *own[OWN_MAX];
static size_t own_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The view stands before the first program runs. */
static void look_at_plan(void) {
  const struct plan *plan = observe.plan;
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    struct stat s;
    if (m->view != VIEW_SHOW || fstatat(observe.root, m->path + 1, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISSOCK(s.st_mode)) sockets_grant(&s, false);
    else if (S_ISDIR(s.st_mode) && strcmp(m->path, m->source) != 0 && own_count < OWN_MAX) own[own_count++] = m->path;
  }
}

static bool is_own(const char *path) {
  const char *slash = strrchr(path, '/');
  for (size_t i = 0; i < own_count; i++)
    if (strlen(own[i]) == (size_t)(slash - path) && memcmp(own[i], path, (size_t)(slash - path)) == 0) return true;
  return false;
}

/* nd7 asks the kernel who has connected, which says that this process has: by the name of the socket's other end it hears for whom. A socket that has a name
 * already could have one that lies. */
static int introduce(const struct call *call, int fd) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  char status[512];
  const char *group = caller_file(call, "status", status, sizeof status) == 0 ? value_of(status, "Tgid:") : NULL;
  if (group == NULL || !call_waits(call)) return ESRCH;
  const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, INTRODUCTION, atoi(group), (unsigned long long)call->id);
  return bind(fd, (const struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0 ? 0 : EACCES;
}

static int may_reach(const struct call *call, struct dial *d) {
  struct stat s;
  bool magic, is_door;
  char real[PATH_MAX];
  size_t length;
  pthread_once(&once, look_at_plan);
  int error = object_find(call, AT_FDCWD, d->address.unix_.sun_path, false, true, &d->object, &magic);
  if (error == 0 && (fstat(d->object, &s) != 0)) error = errno;
  if (error == 0 && !call_waits(call)) error = ESRCH;
  if (error != 0) return error;
  if (!S_ISSOCK(s.st_mode)) return ECONNREFUSED;
  if (sockets_know(&s, &is_door) || grants_socket(&s)) return 0;
  error = path_of(d->object, real, sizeof real, &length);
  if (error != 0) return error;
  if (real[0] == '/' && is_own(real)) return introduce(call, d->fd);
  channel_event(call, EVENT_REFUSED, CALL_CONNECT, EACCES, NAMES_NONE, real);
  return EACCES;
}

#define SO_NETNS_COOKIE_NUMBER 71

static uint64_t network_of(int fd) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE_NUMBER, &cookie, &length) == 0 ? cookie : 0;
}

/* A socket stays in the network in which it was made: one that came in from outside (a standard stream) would connect there. Kernels before 5.14 do not say. */
static int session_socket(const struct call *call, int *fd) {
  static atomic_ullong network;
  const int error = caller_socket(call, INT(0), fd);
  if (error != 0) return error;
  if (domain_of(*fd) < 0) return ENOTSOCK;
  if (atomic_load(&network) == 0) {
    const int sample = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sample < 0) return errno;
    atomic_store(&network, network_of(sample));
    close(sample);
  }
  return network_of(*fd) == atomic_load(&network) ? 0 : EACCES;
}

void do_connect(struct call *call) {
  struct dial d = {.object = -1, .fd = -1};
  int error = session_socket(call, &d.fd);
  if (error == 0) error = caller_address(call, &d.address, &d.length);
  if (error == 0 && domain_of(d.fd) == AF_UNIX && is_path(&d.address, d.length)) error = may_reach(call, &d);
  if (error != 0) return dial_fail(call, &d, error);
  asker_begin(call, &d);
  dial(call, &d);
}

/* --- binding ---------------------------------------------------------------------------------------------------------- */

/* Whatever it is bound to: were the kernel to go on with what is no path, another thread could put a protected one in its place meanwhile. */
void do_bind(struct call *call) {
  union address address;
  socklen_t length;
  int fd = -1, error = caller_address(call, &address, &length);
  if (error == 0) error = session_socket(call, &fd);
  if (error == 0) error = is_path(&address, length) && domain_of(fd) == AF_UNIX ? bind_unix(call, fd, &address.unix_, length) : bind(fd, &address.head, length) == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  call_fail(call, error);
}
