/* The launcher, outside: checks the agent before it starts, passes signals, stops and the exit on, and is the lifeline of everything inside. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

sigset_t original_mask;

/* Those that somebody may send to this program and mean the agent. Stops and WINCH come to the whole process group by themselves. */
static const int PASSED[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

int session_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) sigaddset(&set, PASSED[i]);
  sigaddset(&set, SIGCONT);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, &original_mask);
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) fail("session", "signalfd");
  return fd;
}

static void sleep_ms(long ms) {
  const struct timespec t = {.tv_nsec = ms * 1000000};
  nanosleep(&t, NULL);
}

/* Ends as the agent ended, so that a shell sees the same. */
static _Noreturn void end_like(int status) {
  report("ended\t%d", status);
  if (WIFSIGNALED(status)) {
    const struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, WTERMSIG(status));
    signal(WTERMSIG(status), SIG_DFL);
    kill(getpid(), WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    _exit(128 + WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
}

/* Waits until init has gone, and with it everything inside. */
static void gone(struct session *session, bool ended) {
  close(session->control);
  if (session->gate >= 0) close(session->gate);
  if (session->alive >= 0) {
    bare_gone(session, ended);
    return;
  }
  /* The supervisor ends with this process, behind it: it holds the namespaces, so that nobody waits here until they are taken apart. */
  while (waitpid(session->init, NULL, 0) < 0 && errno == EINTR) continue;
}

static _Noreturn void refuse(struct session *session, const char *step, const char *what) {
  gone(session, false);
  errno = 0;
  fail(step, what);
}

/* Receives what the agent met in the self-test, with its pid from the kernel. 0: it failed before. */
static pid_t agent_ready(struct session *session, struct attempt *inside) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
  } control = {0};
  struct iovec part = {.iov_base = inside, .iov_len = sizeof *inside * ATTEMPTS};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;
  while ((n = recvmsg(session->gate, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n != (ssize_t)(sizeof *inside * ATTEMPTS) || header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) return 0;
  struct ucred peer;
  memcpy(&peer, CMSG_DATA(header), sizeof peer);
  return peer.pid;
}

/* The agent stopped: so do the front and this program, or the shell that waits for them would never have the terminal again. A stop that a SIGCONT has
 * already ended is past: its process is no longer in state T. */
static void stop_too(const struct session *session, pid_t agent, int64_t continued, int64_t stopped) {
  if (continued > stopped) sleep_ms(10);
  if (process_state(agent) != 'T') return;
  if ((session->plan->flags & PLAN_STOP_FRONT) != 0 && getppid() == session->front) kill(session->front, SIGSTOP);
  kill(getpid(), SIGSTOP);
}

static void pass_on(const struct session *session, int signal) {
  const struct message message = {.kind = MESSAGE_SIGNAL, .value = signal, .nanoseconds = now_ns()};
  (void)!send(session->control, &message, sizeof message, MSG_NOSIGNAL);
}

/* Reads signals. What the terminal sends it sends to the agent as well: only what processes send is passed on. Returns whether the session was continued. */
static bool read_signals(const struct session *session, pid_t agent) {
  struct signalfd_siginfo info;
  bool continued = false;
  while (read(session->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCONT) continued = true;
    else if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL) pass_on(session, (int)info.ssi_signo);
  }
  if (continued) {
    /* An agent in a process group of its own is not reached by the shell's fg. */
    sleep_ms(1);
    if (process_state(agent) == 'T') pass_on(session, SIGCONT);
  }
  return continued;
}

/* The front has been told what was proved, and answers when the program may start: it has written it down. Where there is no front, nobody is asked. */
static void await_front(struct session *session, int front) {
  char word = 0;
  ssize_t n = 1;
  while (front >= 0 && (n = recv(front, &word, 1, 0)) < 0 && errno == EINTR) continue;
  if (front >= 0 && (n != 1 || word != 'g')) refuse(session, "session", "its front has gone");
}

/* The supervisor answers calls from now on. One that failed has said why. */
static void await_supervisor(struct session *session) {
  char word = 0;
  ssize_t n = 1;
  while (session->observe >= 0 && (n = recv(session->observe, &word, 1, 0)) < 0 && errno == EINTR) continue;
  if (session->observe >= 0 && (n != 1 || word != 'r')) refuse(session, "observe", "the supervisor has ended");
}

_Noreturn void session_follow(struct session *session) {
  /* A report that nobody reads any more forgets the descriptor, and its end has still to be seen. */
  const int front = report_fd;
  struct attempt inside[ATTEMPTS] = {0};
  struct namespaces own;
  namespaces_of(0, &own);
  const pid_t agent = agent_ready(session, inside);
  if (agent == 0) {
    gone(session, false);
    _exit(125); /* what failed has said so itself */
  }
  await_supervisor(session);
  if (session->observe >= 0 && selftest_is_blind(session->targets, inside)) refuse(session, "observe", "it cannot read what programs ask of it");
  report_gather();
  const bool checked = agent_checked(agent, session->plan, &own);
  const bool held = (session->plan->flags & PLAN_SELFTEST) == 0 || selftest_judge(session->targets, inside, session->outside);
  if (!checked || !held) refuse(session, "self-test", "the boundary let something through");
  report("started\t%d", agent);
  report_together();
  await_front(session, front);
  if (send(session->gate, "g", 1, MSG_NOSIGNAL) != 1) refuse(session, "agent", "it ended before its start");
  close(session->gate);
  session->gate = -1;
  if ((session->plan->flags & PLAN_SELFTEST) != 0) targets_close(session->targets);

  int64_t continued = 0;
  struct pollfd polled[] = {{.fd = session->signals, .events = POLLIN}, {.fd = session->control, .events = POLLIN}, {.fd = front, .events = 0}, {.fd = session->observe, .events = 0}};
  for (;;) {
    if (poll(polled, 4, -1) < 0) continue;
    /* Signals first: whether a stop is past depends on them. */
    if (polled[0].revents != 0 && read_signals(session, agent)) continued = now_ns();
    if (polled[1].revents != 0) {
      struct message message;
      const ssize_t n = recv(session->control, &message, sizeof message, MSG_DONTWAIT);
      if (n == (ssize_t)sizeof message && message.kind == MESSAGE_ENDED) {
        gone(session, true);
        end_like(message.value);
      } else if (n == (ssize_t)sizeof message && message.kind == MESSAGE_STOPPED) {
        stop_too(session, agent, continued, message.nanoseconds);
      } else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        refuse(session, "session", "its first process was killed");
      }
    }
    if ((polled[2].revents & (POLLHUP | POLLERR)) != 0) refuse(session, "session", "its front has gone");
    if ((polled[3].revents & (POLLHUP | POLLERR)) != 0) refuse(session, "observe", "the supervisor was killed");
  }
}
