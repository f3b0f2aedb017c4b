/* Tries each step of a T1 start for real and says how far it came: what the kernel's version promises is not what a container lets through. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static bool filter_action(uint32_t action) { return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0; }

/* A second supervisor in one tree is refused, and containers may refuse the first: tried for real, in a child. */
static bool can_notify(void) {
  const pid_t child = fork();
  if (child == 0) {
    struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    const struct sock_fprog program = {.len = 1, .filter = &allow};
    const bool can = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) >= 0;
    _exit(can ? 0 : 1);
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Runs the steps in a child and prints "name ok", or "name STEP ERRNO" for the one that failed: fail() speaks on the pipe. */
static void try_namespaces(const char *name, uint32_t flags) {
  int ends[2];
  if (pipe(ends) != 0) return;
  fflush(stdout);
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    const pid_t init = namespaces_enter(flags);
    if (init == 0) {
      namespaces_settle(flags, uid, gid);
      struct plan plan = {.flags = flags};
      close(view_build(&plan));
      dprintf(ends[1], "ok\n");
      _exit(0);
    }
    int status = 0;
    waitpid(init, &status, 0);
    _exit(0);
  }
  close(ends[1]);
  char said[512];
  size_t length = 0;
  ssize_t n;
  while (length + 1 < sizeof said && (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0) length += (size_t)n;
  said[length] = '\0';
  said[strcspn(said, "\n")] = '\0';
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
  const char *own = "nd7-launch: ";
  printf("%s\t%s\n", name, strncmp(said, own, strlen(own)) == 0 ? said + strlen(own) : length > 0 ? said : "it died");
}

/* What tier T2 rests on: a process above another, in a Landlock domain around it, reads its memory and takes a copy of its descriptor. */
static void try_looking(void) {
  int ends[2], word = 0, value = 42;
  if (pipe(ends) != 0) return;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && landlock_abi() >= 6) landlock_keep_signals();
    (void)!read(ends[0], &word, sizeof word);
    _exit(0);
  }
  const struct iovec here = {&word, sizeof word}, there = {&value, sizeof value};
  const char *step = NULL;
  if (child < 0) step = "fork";
  else if (process_vm_readv(child, &here, 1, &there, 1, 0) != (ssize_t)sizeof word || word != 42) step = "process_vm_readv";
  const int error = errno;
  const int pidfd = step == NULL ? (int)syscall(NR_PIDFD_OPEN, child, 0) : -1;
  const int copy = pidfd >= 0 ? (int)syscall(NR_PIDFD_GETFD, pidfd, ends[0], 0) : -1;
  if (step != NULL) printf("looking\t%s %d\n", step, error);
  else if (copy < 0) printf("looking\tpidfd_getfd %d\n", errno);
  else printf("looking\tok\n");
  if (copy >= 0) close(copy);
  if (pidfd >= 0) close(pidfd);
  close(ends[0]);
  close(ends[1]);
  if (child > 0) waitpid(child, NULL, 0);
}

int probe(void) {
  struct utsname kernel;
  if (uname(&kernel) == 0) printf("kernel\t%s %s\n", kernel.release, kernel.machine);
  printf("landlock\t%d\n", landlock_abi());
  printf("filter\t%s\n", filter_action(SECCOMP_RET_ERRNO) ? "yes" : "no");
  fflush(stdout);
  printf("notify\t%s\n", filter_action(SECCOMP_RET_USER_NOTIF) && can_notify() ? "yes" : "no");
  try_looking();
  try_namespaces("namespaces", PLAN_USERNS);
  if (geteuid() == 0) try_namespaces("namespaces-as-root", 0);
  return 0;
}
