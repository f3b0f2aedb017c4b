/* nd7's own sockets, in a session whose connections the supervisor makes: whoever connects to one gets one end of a pair, and who listens there the other with
 * who it is. Through a connection the kernel would name this process. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INT(index) ((int)(uint32_t)call->args[index])

/* Whether the caller's descriptor is closed when it executes. 0 or an errno. */
static int closes_on_exec(const struct call *call, bool *closes) {
  char path[48], text[256];
  snprintf(path, sizeof path, "%d/fdinfo/%d", call->pid, INT(0));
  const int info = openat(observe.proc, path, O_RDONLY | O_CLOEXEC);
  if (info < 0) return EACCES;
  const ssize_t n = read(info, text, sizeof text - 1);
  close(info);
  text[n > 0 ? n : 0] = '\0';
  const char *at = strstr(text, "flags:");
  *closes = at != NULL && (strtoul(at + 6, NULL, 8) & O_CLOEXEC) != 0;
  return 0;
}

static bool tell_front(int end, pid_t process) {
  char line[128];
  const int size = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"door\":%d}}\n", process);
  return sockets_tell(line, (size_t)size, end);
}

static bool tell_broker(int end, pid_t process) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof end)];
  } control = {0};
  uint32_t pid = (uint32_t)process;
  struct iovec part = {&pid, sizeof pid};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof end);
  memcpy(CMSG_DATA(header), &end, sizeof end);
  /* One that takes no more is not waited for: its stubs run their commands themselves. */
  return observe.broker >= 0 && sendmsg(observe.broker, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof pid;
}

int door_open(const struct call *call, enum own_socket which, int fd) {
  const int wanted = which == OWN_BROKER ? SOCK_SEQPACKET : SOCK_STREAM;
  int ends[2], type = 0;
  bool closes;
  pid_t process, thread;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != wanted) return EPROTOTYPE;
  int error = caller_numbers(call, &process, &thread);
  if (error == 0) error = closes_on_exec(call, &closes);
  if (error != 0) return error;
  if (socketpair(AF_UNIX, wanted | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  int room = 0;
  length = sizeof room;
  /* The kernel tells twice what was asked for. */
  if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &length) == 0 && (room /= 2) > 0) setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  const bool told = call_waits(call) && (which == OWN_BROKER ? tell_broker(ends[1], process) : tell_front(ends[1], process));
  error = told ? call_replace(call, INT(0), ends[0], closes) : ECONNREFUSED;
  close(ends[0]);
  close(ends[1]);
  return error;
}
