/* nd7-box, the shim by another name: the first program in a box that is not nd7's own. What connects to the box's loopback is led to sockets of nd7 that are
 * bound into it, since the box has no other network. `nd7-box [gate=SOCKET|hold=SOCKET] PORT=SOCKET… -- PROGRAM ARGUMENTS…`. With a gate it is the box's init: the program
 * begins when nd7 has said yes there, and everything ends when nd7 hangs up. `gate` passes signals on to the program, `hold` leaves them to nd7. `nd7-box outside -- PROGRAM ARGUMENTS…` starts what makes a box, out of
 * reach of the signals that are meant for the program in it: the terminal's Ctrl-C would end it, and everything inside with it. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAYS_MAX 64
#define CHUNK 65536

struct way {
  int listener;
  const char *socket;
};

static _Noreturn void give_up_box(const char *what, const char *of) {
  dprintf(STDERR_FILENO, "nd7-box: %s %s: %s\n", what, of, strerror(errno));
  _exit(125);
}

bool is_box(const char *called) {
  const char *slash = called == NULL ? NULL : strrchr(called, '/');
  const char *name = slash != NULL ? slash + 1 : called;
  return name != NULL && strcmp(name, "nd7-box") == 0;
}

static struct way way_of(const char *said) {
  char *end = NULL;
  const long port = strtol(said, &end, 10);
  errno = EINVAL;
  if (port < 1 || port > 65535 || end == NULL || *end != '=' || end[1] != '/') give_up_box("no way", said);
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 511) != 0)
    give_up_box("cannot listen for", said);
  return (struct way){.listener = fd, .socket = end + 1};
}

static int connect_out(const char *path) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof to.sun_path) return -1;
  memcpy(to.sun_path, path, strlen(path) + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* One direction's next bytes; false when it has ended, and the other end is told so. */
static bool pass(int from, int to) {
  static char bytes[CHUNK];
  const ssize_t n = read(from, bytes, sizeof bytes);
  if (n < 0 && errno == EINTR) return true;
  for (ssize_t at = 0; at < n;) {
    const ssize_t sent = write(to, bytes + at, (size_t)(n - at));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(0);
    at += sent;
  }
  if (n <= 0) shutdown(to, SHUT_WR);
  return n > 0;
}

static _Noreturn void join_ends(int inside, int outside) {
  struct pollfd polled[] = {{.fd = inside, .events = POLLIN}, {.fd = outside, .events = POLLIN}};
  const int ends[] = {inside, outside};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled, 2, -1) < 0) continue;
    for (int i = 0; i < 2; i++)
      if (polled[i].fd >= 0 && polled[i].revents != 0 && !pass(ends[i], ends[1 - i])) polled[i].fd = -1;
  }
  _exit(0);
}

/* Lives as long as the program does whose process has forked it. */
static _Noreturn void lead(const struct way *ways, size_t count, pid_t program) {
  struct pollfd polled[WAYS_MAX];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != program) _exit(0);
  setsid();
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd < 3; fd++) close(fd);
  for (size_t i = 0; i < count; i++) polled[i] = (struct pollfd){.fd = ways[i].listener, .events = POLLIN};
  for (;;) {
    if (poll(polled, count, -1) < 0) continue;
    for (size_t i = 0; i < count; i++) {
      const int inside = polled[i].revents != 0 ? accept4(ways[i].listener, NULL, NULL, SOCK_CLOEXEC) : -1;
      if (inside < 0) continue;
      if (fork() == 0) {
        const int outside = connect_out(ways[i].socket);
        if (outside < 0) _exit(1);
        join_ends(inside, outside);
      }
      close(inside);
    }
  }
}

static int connect_gate(const char *path) {
  const int fd = connect_out(path);
  if (fd < 0) give_up_box("nd7 is not reached from this box at", path);
  return fd;
}

/* Nobody knows this box yet whose program would speak; where nd7 hangs up instead it has said why. */
static void pass_gate(const char *path) {
  const int fd = connect_gate(path);
  char yes;
  ssize_t n;
  while ((n = read(fd, &yes, 1)) < 0 && errno == EINTR) continue;
  if (n != 1) _exit(125);
  close(fd);
}

/* True while nd7 holds the other end. */
static bool is_held(int gate) {
  char bytes[16];
  const ssize_t n = recv(gate, bytes, sizeof bytes, MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Buries who dies, and ends as the program has. That the program has been stopped is told at the gate: its shell waits for a process outside. */
static void bury(pid_t program, int gate) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (pid != program) continue;
    if (!WIFSTOPPED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    send(gate, "s", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

/* Signals that others send to nd7 and mean the program. */
static const int MEANT[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/* Here they wait for ever: nd7 sends them to the program itself. */
static int start_outside(char **argv) {
  sigset_t meant;
  sigemptyset(&meant);
  for (size_t i = 0; i < sizeof MEANT / sizeof *MEANT; i++) sigaddset(&meant, MEANT[i]);
  sigprocmask(SIG_BLOCK, &meant, NULL);
  execv(argv[0], argv);
  give_up_box("cannot start", argv[0]);
}

/* The first process of a box; returns in the one that becomes the program. Signals are passed on but for the terminal's, which the program has as well. */
static void be_init(const char *path, bool passes) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &all, NULL);
  const int gate = connect_gate(path), signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) give_up_box("no signals at", path);
  const pid_t program = fork();
  if (program < 0) give_up_box("cannot fork at", path);
  if (program == 0) {
    close(gate);
    close(signals);
    sigprocmask(SIG_SETMASK, &none, NULL);
    pass_gate(path);
    return;
  }
  /* Whoever could trace it would keep it from ending. */
  prctl(PR_SET_DUMPABLE, 0);
  struct pollfd polled[] = {{.fd = gate, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  for (;;) {
    struct signalfd_siginfo got;
    if (poll(polled, 2, -1) < 0) continue;
    while (read(signals, &got, sizeof got) == sizeof got) {
      if (got.ssi_signo == SIGCHLD) bury(program, gate);
      else if (passes && got.ssi_code != SI_KERNEL) kill(program, (int)got.ssi_signo);
    }
    if (polled[0].revents != 0 && !is_held(gate)) {
      /* As process 1 its end is that of all others; where it is not, the program's at least. */
      kill(program, SIGKILL);
      _exit(137);
    }
  }
}

int box_main(int argc, char **argv) {
  struct way ways[WAYS_MAX];
  size_t count = 0;
  int at = 1;
  if (argc > 3 && strcmp(argv[1], "outside") == 0) return start_outside(argv + 3);
  if (argc > 1 && (strncmp(argv[1], "gate=/", 6) == 0 || strncmp(argv[1], "hold=/", 6) == 0)) {
    be_init(argv[1] + 5, argv[1][0] == 'g');
    at++;
  }
  for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
    errno = E2BIG;
    if (count == WAYS_MAX) give_up_box("too many ways at", argv[at]);
    ways[count++] = way_of(argv[at]);
  }
  errno = EINVAL;
  if (at + 1 >= argc) give_up_box("there is no program after", "--");
  const pid_t program = getpid(), child = fork();
  if (child < 0) give_up_box("cannot fork for", argv[at + 1]);
  if (child == 0) lead(ways, count, program);
  execvp(argv[at + 1], argv + at + 1);
  const int error = errno;
  dprintf(STDERR_FILENO, "nd7: %s: %s\n", argv[at + 1], strerror(error));
  return error == ENOENT ? 127 : 126;
}
