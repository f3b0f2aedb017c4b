/* Calls that wait, one after the other in each thread, and their answers. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A kernel may have longer structures than this program knows. */
#define ROOM 512

bool call_waits(const struct call *call) {
  uint64_t id = call->id;
  return ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void answer(struct call *call, int error, uint32_t flags) {
  union {
    struct seccomp_notif_resp head;
    char room[ROOM];
  } response;
  memset(&response, 0, sizeof response);
  response.head.id = call->id;
  response.head.error = -error;
  response.head.flags = flags;
  call->answered = true;
  /* A caller that has gone needs no answer. */
  (void)ioctl(call->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void call_fail(struct call *call, int error) { answer(call, error, 0); }

void call_continue(struct call *call) { answer(call, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE); }

int call_replace(const struct call *call, int number, int fd, bool close_on_exec) {
  struct seccomp_notif_addfd add = {.id = call->id, .flags = SECCOMP_ADDFD_FLAG_SETFD, .srcfd = (uint32_t)fd, .newfd = (uint32_t)number, .newfd_flags = close_on_exec ? O_CLOEXEC : 0};
  return ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? errno : 0;
}

/* Held while a descriptor is the caller's and still this process's too: a program that has just been written cannot be run while somebody has it open for
 * writing, and the caller goes on a moment before it is closed here. Who runs a program waits for that moment (given_settle). To let the caller take the
 * descriptor first and go on later would wake it twice for every open. */
static pthread_rwlock_t giving = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void given_settle(void) {
  pthread_rwlock_wrlock(&giving);
  pthread_rwlock_unlock(&giving);
}

void call_give(struct call *call, int fd, bool close_on_exec) {
  struct seccomp_notif_addfd add = {.id = call->id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = (uint32_t)fd, .newfd_flags = close_on_exec ? O_CLOEXEC : 0};
  pthread_rwlock_rdlock(&giving);
  const int number = ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
  const int error = errno;
  close(fd);
  pthread_rwlock_unlock(&giving);
  call->answered = true;
  /* The caller has as many open as it may. */
  if (number < 0 && error != ENOENT && error != EINPROGRESS) answer(call, error, 0);
}

#define INT(index) ((int)(uint32_t)call->args[index])
#define MODE(index) ((mode_t)(uint32_t)call->args[index])

static void dispatch(struct call *call) {
  if (is_bare() && bare_dispatch(call)) return;
  const uint64_t *a = call->args;
  switch (call->number) {
    case SYS_openat: do_open(call, INT(0), a[1], INT(2), MODE(3)); return;
    case SYS_mkdirat: do_mkdir(call, INT(0), a[1], MODE(2)); return;
    case SYS_mknodat: do_mknod(call, INT(0), a[1], MODE(2), (dev_t)(uint32_t)a[3]); return;
    case SYS_symlinkat: do_symlink(call, a[0], INT(1), a[2]); return;
    case SYS_linkat: do_link(call, INT(0), a[1], INT(2), a[3], INT(4)); return;
    case SYS_renameat: do_rename(call, INT(0), a[1], INT(2), a[3], 0); return;
    case SYS_renameat2: do_rename(call, INT(0), a[1], INT(2), a[3], (unsigned)INT(4)); return;
    case SYS_truncate: do_truncate(call, a[0], (int64_t)a[1]); return;
    case SYS_fchmodat: do_mode(call, INT(0), a[1], MODE(2)); return;
    case SYS_utimensat: do_times(call, INT(0), a[1], a[2], INT(3)); return;
    case SYS_unlinkat: do_unlink(call, INT(0), a[1], INT(2)); return;
    case SYS_connect: do_connect(call); return;
    case SYS_bind: do_bind(call); return;
    case SYS_umask:
      /* A number in a register: it cannot change under the kernel. */
      caller_umask_changes(call, MODE(0));
      call_continue(call);
      return;
    case SYS_execve:
    case SYS_execveat:
      /* Nothing is decided: what was written before stands at its place before another program looks for it (pointers_settle), and nobody writes to it. */
      given_settle();
      call_continue(call);
      return;
#ifdef SYS_open
    case SYS_open: do_open(call, AT_FDCWD, a[0], INT(1), MODE(2)); return;
    case SYS_creat: do_open(call, AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, MODE(1)); return;
    case SYS_mkdir: do_mkdir(call, AT_FDCWD, a[0], MODE(1)); return;
    case SYS_mknod: do_mknod(call, AT_FDCWD, a[0], MODE(1), (dev_t)(uint32_t)a[2]); return;
    case SYS_symlink: do_symlink(call, a[0], AT_FDCWD, a[1]); return;
    case SYS_link: do_link(call, AT_FDCWD, a[0], AT_FDCWD, a[1], 0); return;
    case SYS_chmod: do_mode(call, AT_FDCWD, a[0], MODE(1)); return;
    case SYS_unlink: do_unlink(call, AT_FDCWD, a[0], 0); return;
    case SYS_rmdir: do_unlink(call, AT_FDCWD, a[0], AT_REMOVEDIR); return;
    case SYS_rename: do_rename(call, AT_FDCWD, a[0], AT_FDCWD, a[1], 0); return;
#endif
    default: call_fail(call, ENOSYS);
  }
}

/* Whether no process is left that could call. Kernels since 6.11 then let nobody wait any more: asked again and again they took all processors from the end of the
 * session. */
static bool nobody_calls(int listener) {
  struct pollfd polled = {.fd = listener};
  return poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
}

void call_loop(int listener) {
  union {
    struct seccomp_notif head;
    char room[ROOM];
  } notification;
  for (;;) {
    memset(&notification, 0, sizeof notification);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) {
      if (errno == EINTR) continue;
      if (errno != ENOENT) _exit(125);
      /* The caller went while it was being received, or the last one has gone, and this process ends with the launcher. */
      if (nobody_calls(listener)) return;
      continue;
    }
    const struct seccomp_notif *n = &notification.head;
    struct call call = {.listener = listener, .id = n->id, .pid = (pid_t)n->pid, .number = n->data.nr};
    memcpy(call.args, n->data.args, sizeof call.args);
    caller_goes_on(&call);
    pointers_settle();
    if (!learn_take(&call)) dispatch(&call);
    if (!call.answered) call_fail(&call, EACCES);
  }
}
