/* What is read from a caller. Each is read once; whoever uses it asks afterwards whether the caller still waits (call_waits), since pids are used again. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096u
/* Most paths are shorter: so much is read first. */
#define FIRST 256u

static bool is_refusal(int error) { return error == EPERM || error == EACCES; }

/* A process that may not be looked into (not dumpable, or YAMA) is read by the right of the one who made its namespace. */
static ssize_t read_memory(pid_t pid, uint64_t address, void *to, size_t length) {
  const struct iovec here = {to, length}, there = {(void *)(uintptr_t)address, length};
  ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
  if (n < 0 && is_refusal(errno)) {
    rights_raise(RIGHT_READ_CALLER);
    n = process_vm_readv(pid, &here, 1, &there, 1, 0);
    const int error = errno;
    rights_lower();
    errno = error;
  }
  return n;
}

int caller_bytes(const struct call *call, uint64_t address, void *to, size_t length) {
  return read_memory(call->pid, address, to, length) == (ssize_t)length ? 0 : EFAULT;
}

int caller_text(const struct call *call, uint64_t address, char to[PATH_MAX]) {
  for (size_t have = 0; have < PATH_MAX;) {
    size_t want = PAGE - (size_t)((address + have) % PAGE);
    if (have == 0 && want > FIRST) want = FIRST;
    if (want > PATH_MAX - have) want = PATH_MAX - have;
    const ssize_t n = read_memory(call->pid, address + have, to + have, want);
    if (n <= 0) return EFAULT;
    if (memchr(to + have, '\0', (size_t)n) != NULL) return to[0] == '\0' ? ENOENT : 0;
    have += (size_t)n;
  }
  return ENAMETOOLONG;
}

static int open_of(const struct call *call, const char *what, int flags, int *fd) {
  char path[48];
  snprintf(path, sizeof path, "%d/%s", call->pid, what);
  *fd = openat(observe.proc, path, flags | O_CLOEXEC);
  if (*fd < 0 && is_refusal(errno)) {
    rights_raise(RIGHT_READ_CALLER);
    *fd = openat(observe.proc, path, flags | O_CLOEXEC);
    const int error = errno;
    rights_lower();
    errno = error;
  }
  return *fd < 0 ? errno : 0;
}

int caller_folder(const struct call *call, int dirfd, int *fd) {
  if (dirfd == AT_FDCWD) return open_of(call, "cwd", O_PATH | O_DIRECTORY, fd);
  char name[24];
  if (dirfd < 0) return EBADF;
  snprintf(name, sizeof name, "fd/%d", dirfd);
  const int error = open_of(call, name, O_PATH | O_DIRECTORY, fd);
  return error == ENOENT ? EBADF : error;
}

int caller_object(const struct call *call, int number, int *fd) {
  char name[24];
  if (number < 0) return EBADF;
  snprintf(name, sizeof name, "fd/%d", number);
  const int error = open_of(call, name, O_PATH, fd);
  return error == ENOENT ? EBADF : error;
}

int caller_file(const struct call *call, const char *what, char *to, size_t size) {
  int fd;
  const int error = open_of(call, what, O_RDONLY, &fd);
  if (error != 0) return error;
  const ssize_t n = read(fd, to, size - 1);
  close(fd);
  if (n <= 0) return ESRCH;
  to[n] = '\0';
  return 0;
}

const char *value_of(const char *status, const char *name) {
  const char *line = strstr(status, name);
  return line != NULL && line > status && line[-1] == '\n' ? line + strlen(name) : NULL;
}

int caller_numbers(const struct call *call, pid_t *process, pid_t *thread) {
  char status[4096];
  const int error = caller_file(call, "status", status, sizeof status);
  if (error != 0) return error;
  const char *group = value_of(status, "NStgid:"), *own = value_of(status, "NSpid:");
  if (group == NULL || own == NULL) return ESRCH;
  /* The innermost namespace comes last; there is one below the one outside. */
  const char *line_end = strchr(group, '\n'), *own_end = strchr(own, '\n');
  if (line_end == NULL || own_end == NULL) return ESRCH;
  while (line_end > group && line_end[-1] != '\t') line_end--;
  while (own_end > own && own_end[-1] != '\t') own_end--;
  *process = atoi(line_end);
  *thread = atoi(own_end);
  return *process > 0 && *thread > 0 ? 0 : ESRCH;
}

void caller_name(const struct call *call, char to[16]) {
  char text[32];
  to[0] = '\0';
  if (caller_file(call, "comm", text, sizeof text) != 0) return;
  text[strcspn(text, "\n")] = '\0';
  snprintf(to, 16, "%.15s", text);
}

bool call_is_signalled(const struct call *call) {
  char status[4096];
  if (caller_file(call, "status", status, sizeof status) != 0) return true;
  const char *own = value_of(status, "SigPnd:"), *shared = value_of(status, "ShdPnd:"), *blocked = value_of(status, "SigBlk:"), *caught = value_of(status, "SigCgt:");
  if (own == NULL || shared == NULL || blocked == NULL || caught == NULL) return false;
  const uint64_t pending = strtoull(own, NULL, 16) | strtoull(shared, NULL, 16);
  return (pending & ~strtoull(blocked, NULL, 16) & strtoull(caught, NULL, 16)) != 0;
}
