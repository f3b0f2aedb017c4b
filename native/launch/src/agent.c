/* The process that becomes the agent: gives up everything, proves it, waits for the word, executes. */
#define _GNU_SOURCE
#include "launch.h"

#include "exec.h"
#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

extern char **environ;

/* `owned`: this process has every capability of its user namespace. Without one only root can empty what could be gained; nothing can, without new privileges. */
static void bound_capabilities(bool owned) {
  for (unsigned long capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++) continue;
  if (errno == EPERM && !owned) return;
  if (errno != EINVAL) fail("capabilities", "the bounding set");
  const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) fail("capabilities", "securebits");
}

static void drop_capabilities(bool owned) {
  bound_capabilities(owned);
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) fail("capabilities", "the ambient set");
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct none[2] = {0};
  if (syscall(SYS_capset, &header, none) != 0) fail("capabilities", "capset");
}

/* With a supervisor the filter asks it; returns the descriptor by which it answers, 0 where there is none. */
static int install(const struct sock_fprog *program, bool observed) {
  if (!observed) return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
  /* Once it is received, a call is broken off by deadly signals only: nothing is done twice. Kernels before 5.19 do without. */
  const long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
  if (fd >= 0 || errno != EINVAL) return (int)fd;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
}

bool filter_install(const unsigned char *filter, size_t count, int hand, bool may_lack) {
  /* The plan's bytes lie anywhere; instructions are aligned. */
  struct sock_filter *instructions = calloc(count, sizeof *instructions);
  if (instructions == NULL) fail("memory", "");
  memcpy(instructions, filter, count * sizeof *instructions);
  const struct sock_fprog program = {.len = (unsigned short)count, .filter = instructions};
  int listener = install(&program, hand >= 0);
  if (listener < 0 && hand >= 0 && may_lack) {
    close(hand);
    hand = -1;
    listener = install(&program, false);
  }
  if (listener < 0) fail(hand >= 0 ? "observe" : "filter", "seccomp");
  free(instructions);
  if (hand < 0) return false;
  /* Whoever holds it keeps calls waiting: from here on the supervisor alone. */
  if (!observe_hand(hand, &listener, 1)) fail("observe", "hand-over");
  close(listener);
  close(hand);
  return true;
}

_Noreturn void agent_run(const struct plan *plan, const struct targets *targets, const struct inside *inside) {
  const int gate = inside->gate;
  /* The launcher outside looks at it before it starts. */
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) fail("session", "dumpable");
  sigprocmask(SIG_SETMASK, &original_mask, NULL);
  signal(SIGCHLD, SIG_DFL);
  if (syscall(NR_CLOSE_RANGE, 3u, ~0u, K_CLOSE_RANGE_CLOEXEC) != 0) fail("descriptors", "close_range");
  if (chdir(plan->cwd) != 0) fail("folder", plan->cwd);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("privileges", "no_new_privs");
  drop_capabilities(plan->tier == TIER_SPACES);
  /* After the mounts, or rules would name what lies beneath them. */
  landlock_apply(plan, plan->tier == TIER_BARE ? LAYER_PROGRAM : plan->tier == TIER_ALONE ? LAYER_ALONE : LAYER_ALL);
  const int null = inside->broker < 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (inside->reader >= 0 && null < 0) fail("broker", "/dev/null");
  if (inside->reader >= 0) reader_start(plan, inside, null);
  const bool is_answered = filter_install(plan->filter, plan->filter_count, inside->hand, plan->tier == TIER_ALONE);
  if (is_answered && plan->tier == TIER_ALONE) report("terminals");

  struct attempt attempts[ATTEMPTS] = {0};
  if ((plan->flags & PLAN_SELFTEST) != 0) selftest_attempts(targets, attempts, true);
  char word = 0;
  if (send(gate, attempts, sizeof attempts, MSG_NOSIGNAL) != (ssize_t)sizeof attempts || recv(gate, &word, 1, 0) != 1 || word != 'g') _exit(125);

  if (null >= 0) zygote_start(inside->broker, null);
  environ = plan->envp;
  execvp(plan->argv[0], plan->argv);
  const int error = errno;
  report("failed\texec\t%d\t%s", error, plan->argv[0]);
  dprintf(STDERR_FILENO, "nd7: %s: %s\n", plan->argv[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}
