/* A session without namespaces: launcher → supervisor → first process → program; in TIER_ALONE without the supervisor. It stands above the program, because some systems let nobody
 * but those above look into a process (YAMA); what becomes an orphan stays below the first process. docs/adr/0028, 0036. */
#define _GNU_SOURCE
#include "launch.h"

#include "exec.h"
#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where signals stay in the domain, one call reaches all of it and nobody else, in one step of the kernel's: no process can fork out of it. */
static void end_all(bool is_kept) {
  if (is_kept) (void)kill(-1, SIGKILL);
  else descendants_end(0);
}

/* Whether they do: tried on a process that stands outside and that this user could signal. */
static bool keep_signals(const struct plan *plan, pid_t outside) {
  if (landlock_used(plan) < 6 || kill(outside, 0) != 0) return false;
  landlock_keep_signals();
  return kill(outside, 0) != 0 && errno == EPERM;
}

/* Sees the first process die, whatever kills it, and ends what it leaves. It has the same domain, which the program cannot signal. */
static _Noreturn void ward(int life, bool is_kept) {
  char byte;
  ssize_t n;
  /* Away from the terminal, which stops and ends whole groups. */
  (void)setsid();
  while ((n = read(life, &byte, 1)) < 0 && errno == EINTR) continue;
  if (is_kept) end_all(true);
  _exit(0);
}

static void close_all(const int *fds, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
}

static void make_ward(const int life[2], int control, const struct inside *inside, bool is_kept) {
  const pid_t pid = fork();
  if (pid < 0) fail("session", "fork");
  if (pid > 0) return;
  close(life[1]);
  close(control);
  close(inside->gate);
  close_all((const int[]){inside->hand, inside->broker, inside->reader}, 3);
  for (int fd = 0; fd < 3; fd++) close(fd);
  if (report_fd >= 0) close(report_fd);
  report_fd = -1;
  ward(life[0], is_kept);
}

static _Noreturn void end_session(bool is_kept) {
  end_all(is_kept);
  while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
  _exit(0);
}

/* Ends the session with the agent; all other children are orphans of it. */
static void reap(pid_t agent, int control, bool is_kept) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
    if (pid != agent) continue;
    init_tell(control, WIFSTOPPED(status) ? MESSAGE_STOPPED : MESSAGE_ENDED, status);
    if (!WIFSTOPPED(status)) end_session(is_kept);
  }
}

static void woken(int signal) { (void)signal; }

static _Noreturn void first_process(const struct plan *plan, const struct targets *targets, const struct inside *inside, pid_t launcher) {
  const int control = inside->control;
  int life[2];
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) fail("session", "subreaper");
  const bool is_kept = keep_signals(plan, launcher);
  /* No signal but that of a child reaches it: the terminal's are for the program. */
  sigset_t all, children;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  children = all;
  sigdelset(&children, SIGCHLD);
  const struct sigaction action = {.sa_handler = woken, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  if (pipe2(life, O_CLOEXEC) != 0) fail("session", "pipe");
  make_ward(life, control, inside, is_kept);
  close(life[0]);

  const pid_t agent = fork();
  if (agent < 0) fail("agent", "fork");
  if (agent == 0) {
    close(control);
    agent_run(plan, targets, inside);
  }
  close(inside->gate);
  close_all((const int[]){inside->hand, inside->broker, inside->reader}, 3);
  struct pollfd p = {.fd = control, .events = POLLIN};
  for (;;) {
    reap(agent, control, is_kept);
    const int n = ppoll(&p, 1, NULL, &children);
    /* The launcher has died. */
    if (n > 0 && !init_obey(agent, control)) end_session(is_kept);
  }
}

/* Between launcher and first process: holds what calls are asked for, below the rules that all of the session has. */
static void supervised_start(const struct plan *plan, const struct targets *targets, struct session *session, const struct inside *inside, const int alive[2], int door) {
  const pid_t launcher = getpid();
  int life[2], hand[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, life) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand) != 0) fail("session", "socketpair");
  /* Nobody inside may look into any of the processes that hold it. */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("session", "dumpable");
  const pid_t supervisor = fork();
  if (supervisor < 0) fail("observe", "fork");
  if (supervisor == 0) {
    /* Before the rules: what is granted later is done by a thread that is not under them. */
    hands_start(plan);
    landlock_apply(plan, LAYER_SESSION);
    const pid_t first = fork();
    if (first < 0) fail("session", "fork");
    if (first == 0) {
      const struct inside own = {.control = inside->control, .gate = inside->gate, .hand = hand[1], .broker = inside->broker, .reader = inside->reader};
      close_all((const int[]){session->control, session->gate, life[0], life[1], hand[0], alive[0], session->signals, OBSERVE_CHANNEL, PLAN_CHANNEL, door}, 10);
      first_process(plan, targets, &own, launcher);
    }
    observe_bare(plan, life[1], hand[0], first, door);
  }
  landlock_apply(plan, LAYER_SESSION);
  close_all((const int[]){life[1], hand[0], hand[1], OBSERVE_CHANNEL, PLAN_CHANNEL}, 5);
  session->observe = life[0];
}

/* Nobody is asked for more than the other ends of new terminals, and who answers that is needed by nothing else. */
static void alone_start(const struct plan *plan, const struct targets *targets, const struct session *session, const struct inside *inside, const int alive[2]) {
  const pid_t launcher = getpid();
  int hand[2] = {-1, -1};
  if ((plan->flags & PLAN_TERMINALS) != 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand) != 0) fail("session", "socketpair");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("session", "dumpable");
  const pid_t first = fork();
  if (first < 0) fail("session", "fork");
  if (first == 0) {
    const struct inside own = {.control = inside->control, .gate = inside->gate, .hand = hand[1], .broker = inside->broker, .reader = inside->reader};
    close_all((const int[]){session->control, session->gate, alive[0], session->signals, hand[0]}, 5);
    first_process(plan, targets, &own, launcher);
  }
  if (hand[0] < 0) return;
  close(hand[1]);
  const pid_t terminals = fork();
  if (terminals == 0) terminals_run(hand[0], launcher);
  close(hand[0]);
}

void bare_start(const struct plan *plan, const struct targets *targets, struct session *session, const int control[2], const int gate[2], const struct broker_ends *broker) {
  const struct inside inside = {.control = control[1], .gate = gate[1], .hand = -1, .broker = broker->zygote, .reader = broker->reader};
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) fail("session", "pipe");
  /* Should the first process and its ward be killed at once, what is left comes to this one. */
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("session", "prctl");
  if (plan->tier == TIER_BARE) supervised_start(plan, targets, session, &inside, alive, broker->door);
  else alone_start(plan, targets, session, &inside, alive);
  close(alive[1]);
  broker_leave(broker);
  session->alive = alive[0];
}

void bare_gone(const struct session *session, bool ended) {
  char byte;
  ssize_t n;
  /* Its first process holds the other end, and so does the ward. */
  while ((n = read(session->alive, &byte, 1)) < 0 && errno == EINTR) continue;
  if (session->observe >= 0) close(session->observe);
  if (!ended) descendants_end(0);
}
