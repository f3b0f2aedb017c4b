/* Binding unix sockets: on a copy of the caller's socket. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Whether a path, as it stands there and from this thread's working folder, leads to the folder of `place`, and goes on to: links of the session are changed under
 * the names' lock only, but where one of /proc leads to (another process's working folder) changes when that process likes. */
static bool leads_there(const char *path, const struct place *place) {
  char text[sizeof((struct sockaddr_un *)NULL)->sun_path + 3];
  const char *name;
  size_t length;
  struct stat there, wanted;
  path_split_last(path, &name, &length);
  snprintf(text, sizeof text, "%.*s.", (int)(name - path), path);
  struct k_open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = K_RESOLVE_NO_MAGICLINKS};
  const int fd = (int)syscall(NR_OPENAT2, AT_FDCWD, text, &how, sizeof how);
  const bool leads = fd >= 0 && fstat(fd, &there) == 0 && fstat(place->folder, &wanted) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino;
  if (fd >= 0) close(fd);
  return leads;
}

/* A socket says by what name it was bound, and programs tell others that name: so it is bound by the caller's own text. What the session changes of the way
 * there waits for the names' lock, and this thread makes sockets where the session may alone. Where the text means something else here (/proc/self), by number. */
static int bind_by_text(const struct call *call, int fd, const struct sockaddr_un *address, socklen_t length, const struct place *place) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int folder, error = caller_folder(call, AT_FDCWD, &folder);
  if (error != 0) return error;
  if (fchdir(folder) == 0 && leads_there(address->sun_path, place)) {
    error = bind(fd, (const struct sockaddr *)address, length) == 0 ? 0 : errno;
  } else {
    const int size = snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", path_to(place->folder).text, place->name);
    if (fchdir(observe.fds) != 0 || size < 0 || (size_t)size >= sizeof at.sun_path) error = ENAMETOOLONG;
    else if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0) error = errno;
  }
  close(folder);
  if (fchdir(observe.fds) != 0) abort(); /* Whatever is named by number would be something else from here on. */
  return error;
}

static int bind_at(const struct call *call, int fd, const struct sockaddr_un *address, socklen_t length, struct place *place) {
  struct stat s;
  const struct rule rule = rule_of(place, IS_OTHER);
  const bool writable = is_writable(place->path, place->path_length);
  if (fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) == 0) return EADDRINUSE;
  /* What is granted are files and folders. */
  if (!writable || place->grant != 0 || rule.outcome >= RULE_MASK) {
    if (writable) channel_event(call, EVENT_REFUSED, CALL_BIND, EACCES, rule.index, place->path);
    return EACCES;
  }
  const int error = bind_by_text(call, fd, address, length, place);
  if (error != 0) return error;
  const int held = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (held < 0) return 0;
  if (fstat(held, &s) == 0 && S_ISSOCK(s.st_mode)) (void)sockets_remember(held, &s);
  else close(held);
  return 0;
}

int bind_unix(const struct call *call, int fd, const struct sockaddr_un *address, unsigned length) {
  if (length <= offsetof(struct sockaddr_un, sun_path) || address->sun_path[0] == '\0') return EACCES;
  if (length > sizeof *address) return EINVAL;
  struct place *place = malloc(sizeof *place);
  if (place == NULL) return ENOMEM;
  int error = caller_umask(call);
  names_lock(true);
  if (error == 0) error = place_find(call, AT_FDCWD, address->sun_path, place);
  else place->folder = -1;
  if (error == 0) error = !place->is_plain || place->has_slash ? EADDRINUSE : bind_at(call, fd, address, length, place);
  place_close(place);
  names_unlock();
  free(place);
  return error;
}
