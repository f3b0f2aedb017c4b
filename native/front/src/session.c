/* The front of a session that a host keeps: this process is what the shell waits for. It forks the launcher, so that terminal, process group, streams,
 * limits and umask are its own, passes signals on, prints what the host says, and ends as the program ended. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

extern char **environ;

/* The descriptors of a launcher begin here. */
#define FIRST_CHANNEL 3
/* Above every number that a launcher's descriptors get. */
#define OUT_OF_THE_WAY 16

struct front {
  int control, signals;
  int channels[ATTEMPTS_MAX][CHANNELS]; /* the launchers' ends */
  pid_t launcher;                       /* 0: none runs */
  pid_t prepared;                       /* one that waits for its plan; 0: none does */
  uint32_t prepared_for;                /* the attempt that it was started for */
  bool has_launched, has_terminal, is_refused;
  unsigned char *bytes;
  size_t length, room;
};

/* Makes the channels of every attempt and sends the host its ends. */
static bool pass_channels(struct front *front, int passing) {
  int ends[ATTEMPTS_MAX * CHANNELS];
  size_t made = 0;
  for (; made < ATTEMPTS_MAX * CHANNELS; made++) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) break;
    const int own = fcntl(pair[0], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    close(pair[0]);
    ends[made] = pair[1];
    front->channels[made / CHANNELS][made % CHANNELS] = own;
    if (own < 0) {
      close(pair[1]);
      break;
    }
  }
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof ends)];
  } control = {0};
  char word = 'n';
  struct iovec part = {.iov_base = &word, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof ends);
  memcpy(CMSG_DATA(header), ends, sizeof ends);
  const bool sent = made == ATTEMPTS_MAX * CHANNELS && sendmsg(passing, &message, MSG_NOSIGNAL) == 1;
  for (size_t i = 0; i < made; i++) close(ends[i]);
  return sent;
}

static void close_attempt(struct front *front, uint32_t attempt) {
  for (int i = 0; i < CHANNELS; i++) {
    if (front->channels[attempt][i] >= 0) close(front->channels[attempt][i]);
    front->channels[attempt][i] = -1;
  }
}

static bool send_request(const struct front *front, int argc, char **argv) {
  char cwd[PATH_MAX];
  if (getcwd(cwd, sizeof cwd) == NULL) return false;
  const mode_t mask = umask(0);
  umask(mask);
  uint32_t terminals = 0;
  for (int fd = 0; fd < 3; fd++)
    if (isatty(fd)) terminals |= 1u << fd;
  size_t length;
  unsigned char *bytes = request_make(argc, argv, environ, cwd, (uint32_t)mask, terminals, &length);
  const bool sent = bytes != NULL && write_all(front->control, bytes, length, now_ms() + 10000);
  free(bytes);
  return sent;
}

/* The launcher as Node starts one: every signal as a program finds it, no environment. It does not outlive this process. */
static _Noreturn void become_launcher(const int channels[CHANNELS], const char *path, pid_t front) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != front) _exit(125);
  for (int i = 0; i < CHANNELS; i++)
    if (dup2(channels[i], FIRST_CHANNEL + i) < 0) _exit(125);
  for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  char *const words[] = {(char *)(uintptr_t)path, (char *)"3", NULL};
  char *const nothing[] = {NULL};
  if (chdir("/") == 0) execve(path, words, nothing);
  _exit(125);
}

/* From the first launch on signals are this program's to pass on. */
static bool take_signals(struct front *front) {
  if (front->signals >= 0) return true;
  static const int taken[] = {SIGCHLD, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    sigaddset(&set, taken[i]);
    /* One that is ignored would never come. */
    signal(taken[i], SIG_DFL);
  }
  sigprocmask(SIG_BLOCK, &set, NULL);
  front->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return front->signals >= 0;
}

static pid_t start_launcher(struct front *front, const struct launch_order *order) {
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) become_launcher(front->channels[order->attempt], order->path, self);
  const int error = errno;
  close_attempt(front, order->attempt);
  return child > 0 ? child : -error;
}

/* Starts a launcher while its plan is still made. It knows nothing yet and does nothing, signals are not passed to it, and it ends with this process. */
static bool prepare(struct front *front, const struct launch_order *order) {
  if (front->has_launched || front->prepared != 0 || front->channels[order->attempt][0] < 0) return false;
  /* Where it is ignored nobody would hear how the launcher ended. */
  signal(SIGCHLD, SIG_DFL);
  front->prepared = start_launcher(front, order);
  front->prepared_for = order->attempt;
  return true;
}

/* Nothing will be launched. */
static void drop_prepared(struct front *front) {
  int status;
  if (front->prepared <= 0) return;
  kill(front->prepared, SIGKILL);
  while (waitpid(front->prepared, &status, 0) < 0 && errno == EINTR) continue;
  front->prepared = 0;
}

static void reap(struct front *front);

static bool launch(struct front *front, const struct launch_order *order) {
  const bool is_prepared = front->prepared != 0 && front->prepared_for == order->attempt;
  if (front->launcher != 0 || (!is_prepared && front->channels[order->attempt][0] < 0) || !take_signals(front)) return false;
  const pid_t child = is_prepared ? front->prepared : start_launcher(front, order);
  if (is_prepared) front->prepared = 0;
  front->has_launched = true;
  if (child > 0) front->launcher = child;
  if (!send_number(front->control, TO_LAUNCHED, (uint32_t)child)) return false;
  /* It may have ended before signals were taken. */
  if (is_prepared) reap(front);
  return true;
}

/* As endAs (apps/agent/src/confine/signals.ts). */
static _Noreturn void end_as(const struct end_order *order) {
  static const int without_core[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
  if (!order->by_signal) _exit(order->value);
  for (size_t i = 0; i < sizeof without_core / sizeof *without_core; i++) {
    if (without_core[i] != order->value) continue;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, order->value);
    signal(order->value, SIG_DFL);
    kill(getpid(), order->value);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
  }
  _exit(128 + order->value);
}

/* The host has gone, or says what it must not: the launcher ends when its pipe closes, and with it everything inside. */
static _Noreturn void end_without_host(struct front *front, const char *why) {
  drop_prepared(front);
  close(front->control);
  for (uint32_t i = 0; i < ATTEMPTS_MAX; i++) close_attempt(front, i);
  if (front->launcher > 0) {
    int status;
    kill(front->launcher, SIGKILL);
    while (waitpid(front->launcher, &status, 0) < 0 && errno == EINTR) continue;
  }
  dprintf(STDERR_FILENO, "nd7: the session was ended: %s\n     What the program had done until then stands. The log of the host is run/host.log in nd7's folder.\n", why);
  _exit(1);
}

static void print(const struct frame *frame) { write_all(STDERR_FILENO, frame->body, frame->length, INT64_MAX); }

/* False: the host wants nothing of it, and nothing was started. */
static bool obey(struct front *front, const struct frame *frame) {
  struct launch_order launch_order;
  struct end_order end_order;
  int number;
  switch (frame->kind) {
    case FROM_REFUSE:
      if (front->has_launched) end_without_host(front, "its host refused it after its start");
      front->is_refused = true;
      return false;
    case FROM_PREPARE:
      if (!launch_parse(frame, &launch_order) || !prepare(front, &launch_order)) end_without_host(front, "its launcher could not be started");
      return true;
    case FROM_LAUNCH:
      if (!launch_parse(frame, &launch_order) || !launch(front, &launch_order)) end_without_host(front, "its launcher could not be started");
      return true;
    case FROM_SAY:
      print(frame);
      return true;
    case FROM_FLUSH:
      if (!send_number(front->control, TO_PRINTED, 0)) end_without_host(front, "its host has gone");
      return true;
    case FROM_SIGNAL:
      if (!signal_parse(frame, &number)) end_without_host(front, "its host spoke of no signal");
      if (front->launcher > 0) kill(front->launcher, number);
      return true;
    case FROM_END:
      if (!end_parse(frame, &end_order)) end_without_host(front, "its host spoke of no end");
      if (front->launcher > 0) end_without_host(front, "its host ended before it");
      drop_prepared(front);
      end_as(&end_order);
    default:
      end_without_host(front, "its host said what this program does not know");
  }
}

/* Reads what has come and obeys each whole frame. False: see obey(). */
static bool hear(struct front *front) {
  if (front->room - front->length < 4096) {
    const size_t room = front->room == 0 ? (size_t)16 << 10 : 2 * front->room;
    unsigned char *more = room > 2 * FRAME_MAX ? NULL : realloc(front->bytes, room);
    if (more == NULL) end_without_host(front, "its host said too much");
    front->bytes = more;
    front->room = room;
  }
  const ssize_t n = read(front->control, front->bytes + front->length, front->room - front->length);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) {
    if (!front->has_launched) return false;
    end_without_host(front, "its host has gone");
  }
  front->length += (size_t)n;
  size_t at = 0;
  for (;;) {
    struct frame frame;
    const ssize_t taken = frame_parse(front->bytes + at, front->length - at, &frame);
    if (taken < 0) end_without_host(front, "its host said what is no frame");
    if (taken == 0) break;
    if (!obey(front, &frame)) return false;
    at += (size_t)taken;
  }
  memmove(front->bytes, front->bytes + at, front->length - at);
  front->length -= at;
  return true;
}

static void reap(struct front *front) {
  int status;
  if (front->launcher <= 0 || waitpid(front->launcher, &status, WNOHANG) != front->launcher) return;
  front->launcher = 0;
  if (!send_number(front->control, TO_EXITED, (uint32_t)status)) end_without_host(front, "its host has gone");
}

/* The terminal sends its own to the whole process group. */
static void pass_signals(struct front *front) {
  struct signalfd_siginfo info;
  while (read(front->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    const int number = (int)info.ssi_signo;
    const bool by_terminal = (number == SIGINT || number == SIGQUIT) && front->has_terminal;
    if (number != SIGCHLD && !by_terminal && front->launcher > 0) kill(front->launcher, number);
  }
  reap(front);
}

/* What came of asking a host. */
enum asked { NONE, REFUSED, GONE };

static enum asked ask_host(const struct place *place, int argc, char **argv) {
  struct front front = {.signals = -1, .has_terminal = isatty(0) || isatty(1) || isatty(2)};
  memset(front.channels, 0xff, sizeof front.channels);
  int passing;
  if (!host_connect(place, &passing, &front.control)) return NONE;
  enum asked asked = GONE;
  bool goes_on = pass_channels(&front, passing) && send_request(&front, argc, argv);
  close(passing);
  while (goes_on) {
    struct pollfd polled[] = {{.fd = front.control, .events = POLLIN}, {.fd = front.signals, .events = POLLIN}};
    if (poll(polled, 2, -1) < 0) continue;
    /* A launcher's end before its host's word about it. */
    if (polled[1].revents != 0) pass_signals(&front);
    if (polled[0].revents != 0) goes_on = hear(&front);
  }
  if (front.is_refused) asked = REFUSED;
  drop_prepared(&front);
  close(front.control);
  for (uint32_t i = 0; i < ATTEMPTS_MAX; i++) close_attempt(&front, i);
  free(front.bytes);
  return asked;
}

void run_by_host(const struct place *place, int argc, char **argv) {
  for (char **one = environ; *one != NULL; one++)
    if (is_for_a_start(*one)) return;
  if (place->home == NULL || untrusted(place->home) != NULL) return;
  /* One that goes without a word had got somebody in the same moment, or ended: there is another then, or one is started. */
  if (ask_host(place, argc, argv) == GONE) ask_host(place, argc, argv);
}
