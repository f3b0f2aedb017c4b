/* The short self-test: the agent's own process, just before it executes, tries what must fail; the launcher outside tried the same. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Not tried: the pid is one that the session itself may have, or the tier does not hold it. */
#define NOT_TRIED (-1)

enum row { READ_HIDDEN, WRITE_OUTSIDE, MODE_OUTSIDE, TCP, UDP, ABSTRACT, SIGNAL, INSPECT, NAMESPACE, TERMINAL, URING, DESCRIPTORS, LATE_NAME, PATHNAME };
static const char *const NAMES[ATTEMPTS] = {"read-hidden", "write-outside", "mode-outside", "tcp", "udp", "abstract-socket", "signal", "inspect", "new-namespace", "terminal-input", "io-uring", "descriptors", "late-name", "pathname-socket"};

static struct sockaddr_in loopback(uint16_t port) {
  const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return to;
}

static socklen_t abstract_address(struct sockaddr_un *to, const char *name) {
  memset(to, 0, sizeof *to);
  to->sun_family = AF_UNIX;
  memcpy(to->sun_path + 1, name, strlen(name));
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static bool is_granted(const struct plan *plan, uint16_t port) {
  for (size_t i = 0; i < plan->ports_count; i++) {
    const struct plan_ports *ports = &plan->ports[i];
    if (port >= ports->first && port <= ports->last && (port - ports->first) % ports->step == 0) return true;
  }
  return false;
}

/* A port that no server has and that the plan lets nobody connect to; 0 where none was found, and the kernel's choice where it lets be connected to none. */
static uint16_t closed_port(int fd, const struct plan *plan) {
  for (uint16_t port = 20011; plan->ports_count > 0 && port < 20211; port++) {
    const struct sockaddr_in at = loopback(port);
    if (!is_granted(plan, port) && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0) return port;
  }
  return 0;
}

static int listener(int type, uint16_t *port, const struct plan *plan) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_in at = loopback(0);
  socklen_t length = sizeof at;
  /* A machine without a loopback interface: the row then says that nothing was shown. */
  if (fd < 0 || (closed_port(fd, plan) == 0 && bind(fd, (struct sockaddr *)&at, sizeof at) != 0) || getsockname(fd, (struct sockaddr *)&at, &length) != 0) return -1;
  if (type == SOCK_STREAM && listen(fd, 4) != 0) return -1;
  *port = ntohs(at.sin_port);
  /* All are taken that would show something. */
  if (is_granted(plan, *port)) {
    close(fd);
    return -1;
  }
  return fd;
}

/* By the descriptor of its folder, which both processes have until the program is executed: a path may be too long for a socket's address. */
static socklen_t pathname_address(struct sockaddr_un *to, const struct targets *t) {
  memset(to, 0, sizeof *to);
  to->sun_family = AF_UNIX;
  snprintf(to->sun_path, sizeof to->sun_path, "/proc/self/fd/%d/%s", t->folder, t->pathname_name);
  return sizeof *to;
}

/* Beside the canary, by whose name it is taken away where a start is killed. A disk that has no sockets: the row then says that nothing was shown. */
static void open_pathname(struct targets *t, const struct plan *plan) {
  const char *name = strrchr(plan->canary, '/') + 1;
  char folder[PATH_MAX];
  struct sockaddr_un at;
  t->pathname = t->folder = -1;
  const int length = snprintf(t->pathname_name, sizeof t->pathname_name, "%s-socket", name);
  if (plan->tier != TIER_ALONE || length >= (int)sizeof t->pathname_name) return;
  snprintf(folder, sizeof folder, "%.*s", (int)(name - plan->canary), plan->canary);
  t->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socklen_t size = pathname_address(&at, t);
  if (t->folder >= 0 && fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 4) == 0) t->pathname = fd;
  else if (fd >= 0) close(fd);
}

void targets_open(struct targets *targets, const struct plan *plan) {
  *targets = (struct targets){.launcher = getpid(), .canary = plan->canary, .outside = plan->outside, .late = plan->names != NULL ? plan->cwd : NULL, .has_spaces = plan->tier == TIER_SPACES, .holds_modes = plan->tier != TIER_ALONE, .keeps_signals = plan->tier != TIER_ALONE || landlock_used(plan) >= 6};
  open_pathname(targets, plan);
  targets->tcp = listener(SOCK_STREAM, &targets->tcp_port, plan);
  targets->udp = listener(SOCK_DGRAM, &targets->udp_port, plan);
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) fail("self-test", "getrandom");
  snprintf(targets->abstract_name, sizeof targets->abstract_name, "nd7-%016llx", (unsigned long long)random);
  struct sockaddr_un at;
  const socklen_t length = abstract_address(&at, targets->abstract_name);
  targets->abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (targets->abstract < 0 || bind(targets->abstract, (struct sockaddr *)&at, length) != 0 || listen(targets->abstract, 4) != 0) fail("self-test", "socket");
}

/* errno of a call that returned `result`, 0 when it succeeded. */
static int error_of(long result) { return result < 0 ? errno : 0; }

static int try_open(const char *path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC, 0600);
  const int error = error_of(fd);
  if (fd >= 0) close(fd);
  return error;
}

static int try_write(const char *folder, pid_t launcher) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/.nd7-%d", folder, launcher);
  const int error = try_open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (error == 0) unlink(path);
  return error;
}

/* A name that nothing but the supervisor refuses, in a folder that can be written in; outside nothing is made. */
static int try_late(const char *folder, bool inside) {
  char path[PATH_MAX + 32];
  if (folder == NULL) return NOT_TRIED;
  if (!inside) return error_of(access(folder, W_OK));
  snprintf(path, sizeof path, "%s/" OWN_PREFIX "self-test", folder);
  const int error = try_open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (error == 0) unlink(path);
  return error;
}

static int try_connect(int family, int type, const void *to, socklen_t length) {
  const int fd = socket(family, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = error_of(connect(fd, to, length));
  if (error == 0 && type == SOCK_DGRAM) {
    /* A closed port answers the first datagram, and the second says so. */
    error = error_of(send(fd, "x", 1, MSG_NOSIGNAL));
    if (error == 0) error = error_of(send(fd, "x", 1, MSG_NOSIGNAL));
  }
  close(fd);
  return error;
}

/* EBADF when no descriptor over the three outlives execve. */
static int try_descriptors(void) {
  struct pollfd polled[64];
  for (int from = 3; from < 1024; from += 64) {
    for (int i = 0; i < 64; i++) polled[i] = (struct pollfd){.fd = from + i};
    /* One call says of many which are open. Where it does not, each is looked at. */
    const bool is_told = poll(polled, 64, 0) >= 0;
    for (int i = 0; i < 64; i++) {
      if (is_told && polled[i].revents == POLLNVAL) continue;
      const int flags = fcntl(from + i, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) return 0;
    }
  }
  return EBADF;
}

void selftest_attempts(const struct targets *t, struct attempt *attempts, bool inside) {
  int result[ATTEMPTS];
  char path[64];
  struct stat s;
  const struct sockaddr_in tcp = loopback(t->tcp_port), udp = loopback(t->udp_port);
  struct sockaddr_un abstract;
  const socklen_t length = abstract_address(&abstract, t->abstract_name);

  result[READ_HIDDEN] = try_open(t->canary, O_RDONLY);
  /* Outside nothing is written: the same rights are asked for. */
  result[WRITE_OUTSIDE] = inside ? try_write(t->outside, t->launcher) : error_of(access(t->outside, W_OK));
  if (!t->holds_modes) result[MODE_OUTSIDE] = NOT_TRIED;
  else if (stat(t->outside, &s) != 0) result[MODE_OUTSIDE] = errno;
  else if (inside) result[MODE_OUTSIDE] = error_of(chmod(t->outside, s.st_mode & 07777));
  else result[MODE_OUTSIDE] = s.st_uid == geteuid() ? 0 : EPERM;
  result[TCP] = t->tcp < 0 ? NOT_TRIED : try_connect(AF_INET, SOCK_STREAM, &tcp, sizeof tcp);
  result[UDP] = t->udp < 0 ? NOT_TRIED : try_connect(AF_INET, SOCK_DGRAM, &udp, sizeof udp);
  result[ABSTRACT] = try_connect(AF_UNIX, SOCK_STREAM, &abstract, length);
  struct sockaddr_un pathname;
  result[PATHNAME] = t->pathname < 0 ? NOT_TRIED : try_connect(AF_UNIX, SOCK_STREAM, &pathname, pathname_address(&pathname, t));
  result[SIGNAL] = t->launcher < 16 || !t->keeps_signals ? NOT_TRIED : error_of(kill(t->launcher, 0));
  snprintf(path, sizeof path, "/proc/%d/environ", t->launcher);
  result[INSPECT] = t->launcher < 16 ? NOT_TRIED : try_open(path, O_RDONLY);
  /* Outside, the launcher does it: namespaces_enter. Where it does not, nothing is shown. */
  result[NAMESPACE] = inside ? error_of(unshare(CLONE_NEWUSER)) : t->has_spaces ? 0 : NOT_TRIED;
  /* Without an argument neither call can do anything, but the kernel says how far it came. */
  result[TERMINAL] = error_of(ioctl(STDIN_FILENO, TIOCSTI, NULL));
  result[URING] = error_of(syscall(NR_IO_URING_SETUP, 1, NULL));
  result[LATE_NAME] = try_late(t->late, inside);
  result[DESCRIPTORS] = inside ? try_descriptors() : 0;

  for (int i = 0; i < ATTEMPTS; i++) {
    snprintf(attempts[i].name, sizeof attempts[i].name, "%s", NAMES[i]);
    attempts[i].error = result[i];
  }
}

/* Whether an attempt got where it should not: it succeeded, or the kernel came to look for its argument. */
static bool came_through(int error) { return error == 0 || error == EFAULT; }

/* Takes what has arrived at the datagram target; true when there was something. */
static bool arrived(int udp) {
  char byte;
  bool any = false;
  while (udp >= 0 && recv(udp, &byte, 1, MSG_DONTWAIT) > 0) any = true;
  return any;
}

void selftest_control(const struct targets *targets, struct attempt *attempts) {
  selftest_attempts(targets, attempts, false);
  if (attempts[UDP].error == 0 && !arrived(targets->udp)) attempts[UDP].error = ETIMEDOUT;
}

void targets_close(const struct targets *targets) {
  if (targets->tcp >= 0) close(targets->tcp);
  if (targets->udp >= 0) close(targets->udp);
  close(targets->abstract);
  if (targets->pathname >= 0) {
    close(targets->pathname);
    (void)unlinkat(targets->folder, targets->pathname_name, 0);
  }
  if (targets->folder >= 0) close(targets->folder);
}

bool selftest_is_blind(const struct targets *targets, const struct attempt *inside) { return targets->late != NULL && inside[LATE_NAME].error == EFAULT; }

bool selftest_judge(const struct targets *targets, const struct attempt *inside, const struct attempt *outside) {
  bool held = true;
  const bool datagram = arrived(targets->udp);
  for (int i = 0; i < ATTEMPTS; i++) {
    if ((i == LATE_NAME && targets->late == NULL) || (i == PATHNAME && targets->folder < 0)) continue;
    /* A datagram is lost without a word: only its arrival counts. */
    const bool broken = i == UDP ? datagram : came_through(inside[i].error);
    const bool shown = came_through(outside[i].error) && inside[i].error != NOT_TRIED;
    if (broken) held = false;
    report("proof\t%s\t%s\t%d\t%d", NAMES[i], broken ? "broken" : shown ? "held" : "not-shown", inside[i].error, outside[i].error);
  }
  return held;
}
