/* Connecting a caller's socket: on a copy of it, so that another thread of the program has nothing to exchange. */
#define _GNU_SOURCE
#include "sockets.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define PIDFD_THREAD ((unsigned)O_EXCL)

/* Kernels before 6.9 have a pidfd for whole processes only. */
static int open_caller(const struct call *call) {
  char status[512];
  const int fd = (int)syscall(NR_PIDFD_OPEN, call->pid, PIDFD_THREAD);
  if (fd >= 0 || errno != EINVAL) return fd;
  const char *group = caller_file(call, "status", status, sizeof status) == 0 ? value_of(status, "Tgid:") : NULL;
  return group == NULL ? -1 : (int)syscall(NR_PIDFD_OPEN, (pid_t)atoi(group), 0);
}

int caller_socket(const struct call *call, int number, int *fd) {
  const int pidfd = open_caller(call);
  if (pidfd < 0) return ESRCH;
  rights_raise(RIGHT_READ_CALLER);
  *fd = (int)syscall(NR_PIDFD_GETFD, pidfd, number, 0);
  const int error = *fd < 0 ? errno : 0;
  rights_lower();
  close(pidfd);
  if (error == 0 && !call_waits(call)) {
    close(*fd);
    *fd = -1;
    return ESRCH;
  }
  return error == EPERM ? EACCES : error;
}

int caller_address(const struct call *call, union address *address, socklen_t *length) {
  const uint64_t size = call->args[2] & 0xffffffffu;
  if (size < sizeof address->head.sa_family || size > ADDRESS_MAX) return EINVAL;
  memset(address, 0, sizeof *address);
  *length = (socklen_t)size;
  return caller_bytes(call, call->args[1], address->bytes, (size_t)size);
}

int domain_of(int fd) {
  int domain = -1;
  socklen_t length = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 ? domain : -1;
}

bool is_path(const union address *address, socklen_t length) {
  return address->head.sa_family == AF_UNIX && length > offsetof(struct sockaddr_un, sun_path) && address->unix_.sun_path[0] != '\0';
}

/* --- connecting ------------------------------------------------------------------------------------------------------- */

#define WAITS_MAX 256
static atomic_int waits;

static void leave(struct dial *d) {
  if (d->fd >= 0) close(d->fd);
  if (d->object >= 0) close(d->object);
  d->fd = d->object = -1;
}

void dial_fail(struct call *call, struct dial *d, int error) {
  leave(d);
  call_fail(call, error);
}

static int try(const struct dial *d) { return connect(d->fd, &d->address.head, d->length) == 0 ? 0 : errno; }

/* Without waiting, though the socket would: most connections are there at once, and what is not is not waited for in the kernel, where nothing could break it
 * off. Nobody reads from or writes to a socket that is not connected, so that nobody sees the flag meanwhile. */
static int try_at_once(const struct dial *d, int flags) {
  fcntl(d->fd, F_SETFL, flags | O_NONBLOCK);
  int error = try(d);
  /* One of this machine has answered by now; asked again it says so. */
  if (error == EINPROGRESS) error = try(d);
  fcntl(d->fd, F_SETFL, flags);
  return error;
}

static bool is_under_way(int error) { return error == EALREADY || error == EINPROGRESS || error == EAGAIN; }

/* How long the program lets a connection take, in ns; 0: for ever. */
static int64_t patience_of(int fd) {
  struct timeval limit = {0};
  socklen_t length = sizeof limit;
  return getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &length) != 0 ? 0 : (int64_t)limit.tv_sec * 1000000000 + (int64_t)limit.tv_usec * 1000;
}

static void *wait_for(void *of) {
  struct dial *d = of;
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) _exit(125);
  const int flags = fcntl(d->fd, F_GETFL);
  const int64_t began = now_ns(), patience = patience_of(d->fd);
  /* A stream of this machine's that nobody takes yet is EAGAIN, and the kernel has no word for when it is taken. */
  const bool is_asked = domain_of(d->fd) == AF_UNIX;
  int error;
  for (int ms = 1; is_under_way(error = try_at_once(d, flags)); ms = ms < 20 ? ms * 2 : 20) {
    if (!call_waits(&d->call) || call_is_signalled(&d->call)) error = EINTR;
    else if (patience > 0 && now_ns() - began > patience) error = is_asked ? EAGAIN : EINPROGRESS;
    else {
      (void)poll(&(struct pollfd){.fd = d->fd, .events = POLLOUT}, is_asked ? 0 : 1, ms);
      continue;
    }
    break;
  }
  dial_fail(&d->call, d, error);
  free(d);
  atomic_fetch_sub(&waits, 1);
  return NULL;
}

/* A socket that waits is waited for by a thread of its own. */
static void wait_apart(struct call *call, struct dial *d) {
  pthread_t thread;
  pthread_attr_t attributes;
  struct dial *own = malloc(sizeof *own);
  bool started = atomic_fetch_add(&waits, 1) < WAITS_MAX && own != NULL && pthread_attr_init(&attributes) == 0;
  if (started) {
    *own = *d;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
    started = pthread_create(&thread, &attributes, wait_for, own) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (started) {
    call->answered = true;
    return;
  }
  atomic_fetch_sub(&waits, 1);
  free(own);
  dial_fail(call, d, EAGAIN);
}

void dial(struct call *call, struct dial *d) {
  d->call = *call;
  if (d->object >= 0) {
    /* Its number below this thread's working folder is a path of it. */
    memset(&d->address, 0, sizeof d->address);
    d->address.unix_.sun_family = AF_UNIX;
    snprintf(d->address.unix_.sun_path, sizeof d->address.unix_.sun_path, "%s", path_to(d->object).text);
    d->length = sizeof d->address.unix_;
  }
  const int flags = fcntl(d->fd, F_GETFL);
  const bool is_patient = flags >= 0 && (flags & O_NONBLOCK) == 0;
  const int error = is_patient ? try_at_once(d, flags) : try(d);
  if (error == 0 || is_under_way(error)) asker_tell(d);
  if (is_patient && is_under_way(error)) return wait_apart(call, d);
  dial_fail(call, d, error);
}
