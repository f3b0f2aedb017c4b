/* The supervisor's process: from its start to the end of the session. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

struct observe observe = {.listener = -1, .asking = -1, .blank = -1, .broker = -1};

#define THREADS_MAX 4
/* In `ready`: unix sockets are told apart; masks are laid over names that are made. */
#define FACT_SOCKETS 1u
#define FACT_MASKS 4u

bool observe_hand(int hand, const int *descriptors, size_t count) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * HANDED_MOST)];
  } control = {0};
  char byte = 'd';
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
  return sendmsg(hand, &message, MSG_NOSIGNAL) == 1;
}

/* How many came; ends the process where there is nobody who would send more: what failed there has said so itself. */
static size_t take(int hand, int descriptors[HANDED_MOST]) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * HANDED_MOST)];
  } control = {0};
  char byte;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;
  while ((n = recvmsg(hand, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n != 1 || header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) _exit(125);
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > HANDED_MOST) _exit(125);
  memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
  return count;
}

/* Away from the terminal, its signals and the streams, whose ends others wait for; with nothing that the launcher has open but what is named. */
static void stand_apart(int life, int hand) {
  descriptors_keep((const int[]){life, hand, OBSERVE_CHANNEL, report_fd, observe.broker, is_bare() ? PLAN_CHANNEL : -1}, 6);
  if (setsid() < 0) fail("observe", "setsid");
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++)
    if (null < 0 || dup2(null, fd) != fd) fail("observe", "/dev/null");
  close(null);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const struct rlimit none = {0};
  setrlimit(RLIMIT_CORE, &none);
}

static void open_proc(void) {
  struct statfs fs;
  observe.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (observe.proc < 0 || fstatfs(observe.proc, &fs) != 0 || fs.f_type != PROC_SUPER_MAGIC) fail("observe", "/proc");
  observe.fds = openat(observe.proc, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (observe.fds < 0) fail("observe", "/proc/self/fd");
}

/* Into the session's view and network, and out of every right but those that are raised for a moment. */
static void enter(const int *handed, size_t count) {
  if (count == HANDED_MOST && setns(handed[HANDED_USERS], CLONE_NEWUSER) != 0) fail("observe", "user namespace");
  outside_start();
  if (setns(handed[HANDED_MOUNTS], CLONE_NEWNS) != 0) fail("observe", "mount namespace");
  if (setns(handed[HANDED_NETWORK], CLONE_NEWNET) != 0) fail("observe", "network namespace");
  observe.blank = handed[HANDED_BLANK];
  close(handed[HANDED_MOUNTS]);
  close(handed[HANDED_NETWORK]);
  if (count == HANDED_MOST) close(handed[HANDED_USERS]);
  observe.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (observe.root < 0) fail("observe", "/");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("observe", "no_new_privs");
  rights_settle();
  /* After the last change of rights, which would make it dumpable again. */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("observe", "dumpable");
}

static void *work(void *listener) {
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) _exit(125);
  call_loop(*(const int *)listener);
  return NULL;
}

/* How many threads answer what comes by the other listener. */
#define ASKING_THREADS 2

static void start_threads(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 2;
  if (count < 2) count = 2;
  if (count > THREADS_MAX) count = THREADS_MAX;
  for (int i = 0; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &observe.listener) != 0) fail("observe", "thread");
  }
  for (int i = 0; observe.asking >= 0 && i < ASKING_THREADS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &observe.asking) != 0) fail("observe", "thread");
  }
}

static void read_names(const struct plan *plan) {
  observe.plan = plan;
  open_proc();
  const char *wrong = names_parse(plan->names, plan->names_length, &observe.names);
  if (wrong == NULL) return;
  errno = 0;
  fail("names", wrong);
}

static _Noreturn void answer_calls(int life, int hand, uint32_t facts) {
  int listener[HANDED_MOST];
  /* While the program's process confines itself; from its filter on it waits for this one. */
  floor_start();
  names_disk_at(observe.root, &observe.disk);
  const bool asks = observe.broker >= 0 && observe.plan->asking != NULL;
  for (int i = 0; i < (asks ? 2 : 1); i++)
    if (take(hand, &listener[i]) != 1) _exit(125);
  close(hand);
  /* The zygote's comes first. */
  observe.listener = listener[asks ? 1 : 0];
  if (asks) observe.asking = listener[0];
  /* Who waits for an answer gets it on the processor that gave it; older kernels do without. */
  (void)ioctl(observe.listener, _IOW('!', 4, uint64_t), 1ul);
  if (asks) (void)ioctl(observe.asking, _IOW('!', 4, uint64_t), 1ul);
  /* First who answers: what the program's process tries needs none of the others. */
  start_threads();
  pointers_start();
  grants_start();
  floor_await();
  channel_ready(facts);
  close(report_fd);
  report_fd = -1;
  if (send(life, "r", 1, MSG_NOSIGNAL) != 1) _exit(125);
  struct pollfd polled[] = {{.fd = life, .events = POLLIN}, {.fd = OBSERVE_CHANNEL, .events = POLLIN}, {.fd = is_bare() ? PLAN_CHANNEL : -1, .events = POLLIN}};
  for (;;) {
    if (poll(polled, 3, -1) < 0) continue;
    /* With this process go the listener and all who wait on it; the launcher ends what is inside. */
    if (polled[0].revents != 0) _exit(0);
    if (polled[1].revents != 0 && !channel_read()) _exit(0);
    if (polled[2].revents != 0 && !sockets_drain()) _exit(0);
  }
}

_Noreturn void observe_run(const struct plan *plan, int life, int hand) {
  stand_apart(life, hand);
  read_names(plan);
  int handed[HANDED_MOST];
  const size_t count = take(hand, handed);
  if (count < HANDED_MOST - 1) _exit(125);
  enter(handed, count);
  answer_calls(life, hand, FACT_MASKS | FACT_SOCKETS);
}

_Noreturn void observe_bare(const struct plan *plan, int life, int hand, pid_t first, int broker) {
  observe.first = first;
  observe.broker = broker;
  bare_begin();
  stand_apart(life, hand);
  read_names(plan);
  observe.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (observe.root < 0) fail("observe", "/");
  bare_settle();
  rights_settle();
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("observe", "dumpable");
  answer_calls(life, hand, FACT_SOCKETS);
}
