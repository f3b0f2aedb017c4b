/* Pid 1 of the session: makes the view, starts the agent, reaps, and ends everything when the launcher outside has gone. */
#define _GNU_SOURCE
#include "launch.h"
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void woken(int signal) { (void)signal; }

void init_tell(int control, uint32_t kind, int value) {
  const struct message message = {.kind = kind, .value = value, .nanoseconds = now_ns()};
  /* A launcher that has gone ends the session through the poll. */
  (void)!send(control, &message, sizeof message, MSG_NOSIGNAL);
}

/* Collects every child that has changed; ends the session with the agent. */
static void reap(pid_t agent, int control) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (pid != agent) continue;
    if (WIFSTOPPED(status)) {
      init_tell(control, MESSAGE_STOPPED, status);
    } else {
      init_tell(control, MESSAGE_ENDED, status);
      /* The kernel kills what is left in this pid namespace. */
      _exit(0);
    }
  }
}

bool init_obey(pid_t agent, int control) {
  struct message message;
  const ssize_t n = recv(control, &message, sizeof message, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n != (ssize_t)sizeof message) return false;
  if (message.kind == MESSAGE_SIGNAL) kill(agent, message.value);
  return true;
}

/* The supervisor enters from outside: by descriptors, since it finds no path to this process. */
static void hand_over(const struct plan *plan, int hand, int blank) {
  const bool has_users = (plan->flags & PLAN_USERNS) != 0;
  const int spaces[HANDED_MOST] = {
      [HANDED_MOUNTS] = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
      [HANDED_NETWORK] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
      [HANDED_BLANK] = blank,
      [HANDED_USERS] = has_users ? open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC) : -1,
  };
  if (!observe_hand(hand, spaces, has_users ? HANDED_MOST : HANDED_MOST - 1)) fail("observe", "hand-over");
  for (int i = 0; i < HANDED_MOST; i++)
    if (spaces[i] >= 0 && i != HANDED_BLANK) close(spaces[i]);
}

_Noreturn void init_run(const struct plan *plan, const struct targets *targets, const struct inside *inside) {
  const int blank = view_build(plan), control = inside->control;
  if (inside->hand >= 0) hand_over(plan, inside->hand, blank);
  close(blank);
  /* Nobody inside may look into this process; after the maps, which only a dumpable one can write. */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("session", "dumpable");

  sigset_t children, none;
  sigemptyset(&none);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  /* With the default action a child's end would not interrupt ppoll. */
  const struct sigaction action = {.sa_handler = woken, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);

  const pid_t agent = fork();
  if (agent < 0) fail("agent", "fork");
  if (agent == 0) {
    close(control);
    agent_run(plan, targets, inside);
  }
  close(inside->gate);
  if (inside->hand >= 0) close(inside->hand);
  if (inside->broker >= 0) close(inside->broker);
  struct pollfd p = {.fd = control, .events = POLLIN};
  for (;;) {
    reap(agent, control);
    const int n = ppoll(&p, 1, NULL, &none);
    /* The launcher has died. */
    if (n > 0 && !init_obey(agent, control)) _exit(0);
  }
}
