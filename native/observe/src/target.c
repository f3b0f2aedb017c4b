/* Calls on other processes that take a number: only those of the session are meant by it. What is looked at is a register, which cannot change; who has a pid
 * can, between the answer and the call, if it ends and the number comes round. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INT(index) ((int)(uint32_t)call->args[index])

/* The process that is meant; 0: the caller; -1: more than one. */
static int target_of(const struct call *call, bool *is_target) {
  *is_target = true;
  switch (call->number) {
    case SYS_prlimit64:
    case SYS_sched_setaffinity:
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo: return INT(0);
    case SYS_setpriority:
    case SYS_ioprio_set: return INT(1);
    /* A group has the number of its leader, and nobody outside joins one of the session's. */
    case SYS_kill: return INT(0) == 0 ? -1 : INT(0) < -1 ? -INT(0) : INT(0);
    default: *is_target = false; return 0;
  }
}

/* What runs under the filter: the first process and its ward do not. */
static bool has_filter(pid_t pid) {
  char path[32], text[4096];
  snprintf(path, sizeof path, "%d/status", pid);
  const int fd = openat(observe.proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return strstr(text, "\nSeccomp:\t2\n") != NULL;
}

bool target_dispatch(struct call *call) {
  bool is_target;
  const int pid = target_of(call, &is_target);
  if (!is_target) return false;
  if (pid == 0 || (pid > 0 && has_filter(pid) && is_descendant(observe.proc, pid, observe.first))) call_continue(call);
  else call_fail(call, pid > 0 ? ESRCH : EPERM);
  return true;
}
