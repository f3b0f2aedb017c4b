/* Connections from outside to servers inside: the front asks for one by port, and gets the socket. A process of its own, in the session's network and
 * outside of everything else of it, since a front cannot enter the network of a user namespace. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define LAUNCHER_FDS 64
/* Longest line from the front; its acknowledgements are shorter. */
#define LINE 128
/* A server that does not take connections for so long is none. */
#define CONNECT_MS 2000

enum { ENTRY_NETWORK, ENTRY_USERS, ENTRY_MOST };

void connector_hand(const struct plan *plan, int entry) {
  const bool has_users = (plan->flags & PLAN_USERNS) != 0;
  const int spaces[ENTRY_MOST] = {
      [ENTRY_NETWORK] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
      [ENTRY_USERS] = has_users ? open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC) : -1,
  };
  if (!observe_hand(entry, spaces, has_users ? ENTRY_MOST : ENTRY_MOST - 1)) fail("listeners", "hand-over");
  for (int i = 0; i < ENTRY_MOST; i++)
    if (spaces[i] >= 0) close(spaces[i]);
  close(entry);
}

/* How many descriptors came. */
static size_t take(int entry, int *spaces) {
  char byte;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(ENTRY_MOST * sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;
  while ((n = recvmsg(entry, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n <= 0 || header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return 0;
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > ENTRY_MOST) return 0;
  memcpy(spaces, CMSG_DATA(header), count * sizeof(int));
  return count;
}

/* Into the session's network, out of every right, and gone with the launcher. */
static void enter(int entry, pid_t launcher) {
  for (int fd = 0; fd < LAUNCHER_FDS; fd++)
    if (fd != entry && fd != PLAN_CHANNEL && fd != report_fd) close(fd);
  /* The terminal's signals are for the program inside. */
  if (setsid() < 0) fail("listeners", "setsid");
  int spaces[ENTRY_MOST];
  const size_t count = take(entry, spaces);
  /* Init has failed and said so. */
  if (count < ENTRY_MOST - 1) _exit(125);
  if (count == ENTRY_MOST && setns(spaces[ENTRY_USERS], CLONE_NEWUSER) != 0) fail("listeners", "user namespace");
  if (setns(spaces[ENTRY_NETWORK], CLONE_NEWNET) != 0) fail("listeners", "network namespace");
  for (size_t i = 0; i < count; i++) close(spaces[i]);
  close(entry);
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct none[2] = {0};
  if (syscall(SYS_capset, &header, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("listeners", "capabilities");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("listeners", "dumpable");
  /* A change of rights would undo it. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != launcher) _exit(125);
  close(report_fd);
}

static bool is_connected(int fd, const struct sockaddr *at, socklen_t length) {
  if (connect(fd, at, length) == 0) return true;
  if (errno != EINPROGRESS) return false;
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (poll(&p, 1, CONNECT_MS) > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

/* A server inside listens on one of the two loopback addresses, or on both; -1 with errno where nobody does. */
static int connect_to(uint16_t port) {
  const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const struct sockaddr *const at[] = {(const struct sockaddr *)&four, (const struct sockaddr *)&six};
  const socklen_t length[] = {sizeof four, sizeof six};
  for (int i = 0; i < 2; i++) {
    const int fd = socket(at[i]->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && is_connected(fd, at[i], length[i])) return fd;
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    if (error != ECONNREFUSED) return -1;
  }
  return -1;
}

static void answer(uint32_t id, uint16_t port) {
  const int fd = connect_to(port);
  if (fd >= 0) channel_hand("net.Socket", "connected", id, fd);
  else channel_say("failed", id, errno);
}

/* A line of the front's: `{"connect":PORT,"id":N}`, as JSON.stringify has it. Anything else is an acknowledgement of Node's. */
static void obey(const char *line) {
  unsigned port = 0, id = 0;
  int end = -1;
  if (sscanf(line, "{\"connect\":%5u,\"id\":%9u}%n", &port, &id, &end) != 2 || end < 0 || line[end] != '\0') return;
  if (port > 0 && port <= UINT16_MAX) answer(id, (uint16_t)port);
}

_Noreturn void connector_run(int entry, pid_t launcher) {
  enter(entry, launcher);
  char line[LINE];
  size_t length = 0;
  for (;;) {
    char bytes[512];
    struct pollfd p = {.fd = PLAN_CHANNEL, .events = POLLIN};
    if (poll(&p, 1, -1) < 0) continue;
    const ssize_t n = read(PLAN_CHANNEL, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    /* The front has gone, and with it the session. */
    if (n <= 0) _exit(0);
    for (ssize_t i = 0; i < n; i++) {
      if (bytes[i] != '\n') {
        if (length < sizeof line) line[length++] = bytes[i];
        continue;
      }
      if (length < sizeof line) {
        line[length] = '\0';
        obey(line);
      }
      length = 0;
    }
  }
}
