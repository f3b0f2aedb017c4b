/* Opening to read, in sessions that are asked about every open: something in a writable folder is hidden, and Landlock takes nothing away again. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAITS_MAX 256

struct wait {
  struct call call;
  int object, flags;
};

static atomic_int waits;

static int open_again(int object, int flags, bool granted) {
  const int how = (flags & ~O_NOFOLLOW) | O_NOCTTY | O_CLOEXEC;
  const int fd = granted ? act_reopen(object, how) : openat(observe.fds, path_to(object).text, how);
  return fd < 0 ? -errno : fd;
}

/* Who reads from a pipe waits in the kernel for who writes, and is seen there by it. */
static void *wait_for(void *of) {
  struct wait *w = of;
  const int fd = open_again(w->object, w->flags, false);
  if (fd < 0) call_fail(&w->call, -fd);
  else call_give(&w->call, fd, (w->flags & O_CLOEXEC) != 0);
  close(w->object);
  free(w);
  atomic_fetch_sub(&waits, 1);
  return NULL;
}

static bool wait_apart(struct call *call, int object, int flags) {
  struct wait *w = malloc(sizeof *w);
  pthread_t thread;
  pthread_attr_t attributes;
  if (w != NULL) *w = (struct wait){.call = *call, .object = object, .flags = flags};
  bool started = atomic_fetch_add(&waits, 1) < WAITS_MAX && w != NULL && pthread_attr_init(&attributes) == 0;
  if (started) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
    started = pthread_create(&thread, &attributes, wait_for, w) == 0;
    pthread_attr_destroy(&attributes);
  }
  call->answered = started;
  if (started) return true;
  atomic_fetch_sub(&waits, 1);
  free(w);
  return false;
}

/* A name that matches a mask which lets nothing out is not read either, whoever has made it. */
static bool is_masked(int object) {
  struct place *place = malloc(sizeof *place);
  bool masked = true;
  if (place != NULL && path_of(object, place->path, PATH_MAX, &place->path_length) == 0) {
    place->grant = 0;
    masked = false;
    if (place->path[0] == '/') {
      path_split_last(place->path, &place->name, &place->name_length);
      const struct rule rule = rule_of(place, IS_FILE);
      masked = rule.index != NAMES_NONE && (rule.index & RULE_IS_MASK) != 0 && rule.outcome == RULE_REFUSE;
    }
  }
  free(place);
  return masked;
}

/* What a grant lets be read: files and folders, and of what it hides itself only what it names. */
static bool is_granted(int object, const struct stat *s) {
  char path[PATH_MAX];
  size_t length;
  return (S_ISREG(s->st_mode) || S_ISDIR(s->st_mode)) && path_of(object, path, sizeof path, &length) == 0 && path[0] == '/' && grant_reads(path, length, bare_hides(path, length));
}

/* `granted`: it is opened by who has what grants give. */
static int may_read(const struct call *call, int *object, bool *granted) {
  struct stat s;
  char path[PATH_MAX];
  size_t length;
  if (fstat(*object, &s) != 0) return errno;
  if (S_ISLNK(s.st_mode)) return ELOOP;
  *granted = is_granted(*object, &s);
  if (*granted) return 0;
  if (S_ISCHR(s.st_mode) && path_of(*object, path, sizeof path, &length) == 0 && strcmp(path, "/dev/tty") == 0) {
    int terminal;
    const int error = own_terminal(call, &terminal);
    if (error != 0) return error;
    close(*object);
    *object = terminal;
  }
  const int closed = bare_may_open(*object);
  return closed == 0 && !S_ISDIR(s.st_mode) && is_masked(*object) ? EACCES : closed;
}

void do_read(struct call *call, int dirfd, const char *path, int flags) {
  int object = -1;
  bool magic, granted = false;
  struct stat s;
  const bool wants_folder = (flags & O_DIRECTORY) != 0 || path[strlen(path) - 1] == '/';
  names_lock(false);
  int error = object_find(call, dirfd, path, wants_folder, (flags & O_NOFOLLOW) == 0, &object, &magic);
  if (error == 0 && !call_waits(call)) error = ESRCH;
  if (error == 0) object = bare_file(object);
  if (error == 0) error = may_read(call, &object, &granted);
  const bool waits_here = error == 0 && (flags & O_NONBLOCK) == 0 && fstat(object, &s) == 0 && S_ISFIFO(s.st_mode);
  const int fd = error != 0 || waits_here ? -1 : open_again(object, flags | O_NONBLOCK, granted);
  names_unlock();
  if (error == 0 && waits_here) {
    if (wait_apart(call, object, flags)) return;
    error = ENOMEM;
  }
  if (object >= 0) close(object);
  if (error != 0 || fd < 0) return call_fail(call, error != 0 ? error : -fd);
  if ((flags & O_NONBLOCK) == 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  call_give(call, fd, (flags & O_CLOEXEC) != 0);
}
