/* nd7-launch FD: reads a plan from the descriptor and runs its program inside. nd7-launch --probe: says what this kernel gives. */
#define _GNU_SOURCE
#include "launch.h"

#include "exec.h"
#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void refuse_plan(const char *what) {
  errno = 0;
  fail("plan", what);
}

static void read_all(int fd, unsigned char *to, size_t length) {
  while (length > 0) {
    const ssize_t n = read(fd, to, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse_plan("it ended before its end");
    to += n;
    length -= (size_t)n;
  }
}

static unsigned char *read_plan(int fd, size_t *length) {
  unsigned char header[PLAN_HEADER];
  /* A front starts a launcher before it has a plan, and may find that there is none to be had: it says that itself. */
  if (report_fd >= 0) {
    ssize_t n;
    while ((n = recv(fd, header, 1, MSG_PEEK)) < 0 && errno == EINTR) continue;
    if (n == 0) _exit(125);
  }
  read_all(fd, header, sizeof header);
  *length = plan_size(header);
  if (*length == 0) refuse_plan("it is no plan of this version");
  unsigned char *bytes = malloc(*length);
  if (bytes == NULL) fail("memory", "");
  memcpy(bytes, header, sizeof header);
  read_all(fd, bytes + sizeof header, *length - sizeof header);
  return bytes;
}

/* A folder that is handed over is a way past the view: from it every path outside can be named. A datagram socket is one past the network: from it whoever is outside
 * can be written to. */
static void refuse_streams(void) {
  struct stat s;
  int type = 0;
  for (int fd = 0; fd < 3; fd++) {
    socklen_t length = sizeof type;
    if (fstat(fd, &s) != 0) continue;
    errno = 0;
    if (S_ISDIR(s.st_mode)) fail("streams", "one of the three standard streams is a folder");
    if (S_ISSOCK(s.st_mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && (type == SOCK_DGRAM || type == SOCK_RAW))
      fail("streams", "one of the three standard streams is a datagram socket");
  }
}

/* A channel that Node made, and that nothing which is executed inherits. */
static bool is_channel(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static void pair(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("session", "socketpair");
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--probe") == 0) return probe();
  char *end = NULL;
  const long number = argc == 2 ? strtol(argv[1], &end, 10) : -1;
  if (end == NULL || *end != '\0' || end == argv[1] || number < 3 || number > 1 << 20) {
    dprintf(STDERR_FILENO, "usage: nd7-launch FD     a plan is read from the descriptor\n       nd7-launch --probe  what this kernel gives\n");
    return 125;
  }
  const int fd = (int)number;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) fail("plan", "its descriptor");
  /* A front that sends the plan through a socket hears from us on it, and the session ends when it goes. */
  struct stat s;
  if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode)) report_fd = fd;

  const char *bad = untrusted();
  if (bad != NULL) {
    errno = 0;
    fail("trust", bad);
  }
  size_t length;
  unsigned char *bytes = read_plan(fd, &length);
  struct plan plan;
  const char *wrong = plan_parse(bytes, length, &plan);
  if (wrong != NULL) refuse_plan(wrong);

  const bool is_observed = plan.names != NULL, is_bare = plan.tier == TIER_BARE;
  const bool connects = (plan.flags & PLAN_CONNECT) != 0, has_channel = plan.listener_count > 0 || connects || is_bare;
  if (has_channel && !is_channel(PLAN_CHANNEL)) fail("listeners", "there is no channel to hand them out on");
  if (is_observed && !is_channel(OBSERVE_CHANNEL)) fail("observe", "there is no channel to its front");

  if (plan.broker != NULL && !is_channel(BROKER_CHANNEL)) fail("broker", "there is no channel to its front");

  refuse_streams();
  /* The first process of the session lives as long as it does: it keeps nothing that the front happened to have open. */
  descriptors_keep((const int[]){fd, has_channel ? PLAN_CHANNEL : -1, is_observed ? OBSERVE_CHANNEL : -1, plan.broker != NULL ? BROKER_CHANNEL : -1}, 4);

  struct targets targets = {0};
  struct attempt outside[ATTEMPTS] = {0};
  if ((plan.flags & PLAN_SELFTEST) != 0) {
    targets_open(&targets, &plan);
    selftest_control(&targets, outside);
  }
  int control[2], gate[2], life[2] = {-1, -1}, hand[2] = {-1, -1}, entry[2] = {-1, -1};
  if (is_observed && !is_bare) {
    pair(life);
    pair(hand);
    const pid_t supervisor = fork();
    if (supervisor < 0) fail("observe", "fork");
    if (supervisor == 0) {
      close(life[0]);
      close(hand[1]);
      if (has_channel) close(PLAN_CHANNEL);
      if (plan.broker != NULL) close(BROKER_CHANNEL);
      observe_run(&plan, life[1], hand[0]);
    }
    close(life[1]);
    close(hand[0]);
    close(OBSERVE_CHANNEL);
  }
  if (connects) {
    pair(entry);
    const pid_t launcher = getpid(), connector = fork();
    if (connector < 0) fail("listeners", "fork");
    if (connector == 0) connector_run(entry[0], launcher);
    close(entry[0]);
  }
  struct broker_ends broker = {-1, -1, -1};
  if (plan.broker != NULL) broker_start(&plan, &broker);
  pair(control);
  pair(gate);
  const int yes = 1;
  if (setsockopt(gate[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0) fail("session", "SO_PASSCRED");
  struct session session = {.plan = &plan, .targets = &targets, .outside = outside, .front = getppid(), .control = control[0], .gate = gate[0], .observe = life[0], .alive = -1, .signals = session_signals()};
  if (plan.tier != TIER_SPACES) {
    bare_start(&plan, &targets, &session, control, gate, &broker);
    close(control[1]);
    close(gate[1]);
    session_follow(&session);
  }
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  session.init = namespaces_enter(plan.flags);
  if (session.init == 0) {
    /* The other ends must have one holder, or nobody would see it die. */
    close(control[0]);
    close(gate[0]);
    close(session.signals);
    if (is_observed) close(life[0]);
    namespaces_settle(plan.flags, uid, gid);
    routes_make(&plan);
    listeners_hand_out(&plan);
    if (connects) connector_hand(&plan, entry[1]);
    const struct inside inside = {.control = control[1], .gate = gate[1], .hand = hand[1], .broker = broker.zygote, .reader = -1};
    init_run(&plan, &targets, &inside);
  }
  broker_leave(&broker);
  close(control[1]);
  close(gate[1]);
  if (is_observed) close(hand[1]);
  if (connects) close(entry[1]);
  if (has_channel) close(PLAN_CHANNEL);
  session_follow(&session);
}
