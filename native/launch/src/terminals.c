/* TIER_ALONE: gives a program the other end of a terminal that it has made itself. Landlock tells terminals apart by their folder alone, and a right to that is one
 * to all of this user's: so nobody inside opens any by name, and the one call that names none, TIOCGPTPEER, is asked about. It is carried out here, outside of the
 * rules, without a look into the caller's memory and without a copy of its descriptor, which is what systems refuse that leave this tier only. docs/adr/0043. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A kernel may have longer structures than this program knows. */
#define ROOM 512

struct terminal_call {
  int listener;
  uint64_t id;
  pid_t thread;
  int number, flags;
};

/* The number of the terminal whose master one of the caller's descriptors is; -1: it is none. */
static long number_of(const struct terminal_call *call) {
  char path[64], text[512];
  struct stat s;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", call->thread, call->number);
  if (stat(path, &s) != 0 || !S_ISCHR(s.st_mode) || s.st_rdev != makedev(5, 2)) return -1;
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", call->thread, call->number);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return -1;
  text[n] = '\0';
  static const char LINE[] = "\ntty-index:\t";
  const char *at = strstr(text, LINE);
  return at == NULL ? -1 : strtol(at + sizeof LINE - 1, NULL, 10);
}

static bool waits(const struct terminal_call *call) {
  uint64_t id = call->id;
  return ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* 0 or an errno. The number is asked for again once the other end is open: while it is, nobody else's terminal can get that number, so that a master which has it
 * then is the one that belongs to it, whatever the caller's threads exchanged meanwhile. */
static int peer_of(const struct terminal_call *call, int *peer) {
  char path[32];
  struct statfs fs;
  const long number = number_of(call);
  if (number < 0 || !waits(call)) return EIO;
  snprintf(path, sizeof path, "/dev/pts/%ld", number);
  /* Whose terminal it is to be is said by another call. */
  const int fd = open(path, (call->flags & (O_ACCMODE | O_NONBLOCK)) | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno;
  if (fstatfs(fd, &fs) != 0 || fs.f_type != DEVPTS_SUPER_MAGIC || number_of(call) != number || !waits(call)) {
    close(fd);
    return EIO;
  }
  *peer = fd;
  return 0;
}

static void answer(const struct terminal_call *call) {
  int peer = -1;
  int error = peer_of(call, &peer);
  if (error == 0) {
    struct seccomp_notif_addfd add = {.id = call->id, .flags = SECCOMP_ADDFD_FLAG_SEND, .srcfd = (uint32_t)peer, .newfd_flags = (call->flags & O_CLOEXEC) != 0 ? O_CLOEXEC : 0};
    if (ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) error = errno;
    close(peer);
  }
  if (error == 0) return;
  union {
    struct seccomp_notif_resp head;
    char room[ROOM];
  } response;
  memset(&response, 0, sizeof response);
  response.head.id = call->id;
  response.head.error = -error;
  (void)ioctl(call->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Where nobody could be made to answer, the agent closes its end, and this process is not needed. */
static int take_listener(int hand) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  char byte;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;
  int listener = -1;
  while ((n = recvmsg(hand, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (n == 1 && header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) memcpy(&listener, CMSG_DATA(header), sizeof listener);
  return listener;
}

static bool is_over(int listener) {
  struct pollfd polled = {.fd = listener};
  return poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0;
}

_Noreturn void terminals_run(int hand, pid_t launcher) {
  union {
    struct seccomp_notif head;
    char room[ROOM];
  } notification;
  /* What a terminal sends goes to whole groups; and without a terminal of its own it can be given none by opening one. */
  (void)setsid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != launcher) _exit(0);
  descriptors_keep((const int[]){hand}, 1);
  for (int fd = 0; fd < 3; fd++) close(fd);
  report_fd = -1;
  const int listener = take_listener(hand);
  close(hand);
  while (listener >= 0) {
    memset(&notification, 0, sizeof notification);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) {
      if (errno != EINTR && (errno != ENOENT || is_over(listener))) break;
      continue;
    }
    const struct seccomp_notif *n = &notification.head;
    answer(&(const struct terminal_call){.listener = listener, .id = n->id, .thread = (pid_t)n->pid, .number = (int)(uint32_t)n->data.args[0], .flags = (int)(uint32_t)n->data.args[2]});
  }
  _exit(0);
}
