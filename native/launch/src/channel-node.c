/* The channel on which Node takes handles from a child process: lines of JSON, a descriptor with some of them. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* `fd` -1: none. A front that does not read keeps us waiting. */
static void send_line(const char *line, size_t length, int fd) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = (void *)(uintptr_t)line, .iov_len = length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t n;
  while ((n = sendmsg(PLAN_CHANNEL, &message, MSG_NOSIGNAL)) < 0 && (errno == EAGAIN || errno == EINTR)) {
    struct pollfd p = {.fd = PLAN_CHANNEL, .events = POLLOUT};
    poll(&p, 1, -1);
  }
  if (n != (ssize_t)length) fail("listeners", "hand-over");
}

void channel_hand(const char *type, const char *word, uint32_t number, int fd) {
  char line[128];
  const int length = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"%s\",\"msg\":{\"%s\":%u}}\n", type, word, number);
  send_line(line, (size_t)length, fd);
  close(fd);
}

void channel_say(const char *word, uint32_t number, int error) {
  char line[64];
  const int length = snprintf(line, sizeof line, "{\"%s\":%u,\"error\":%d}\n", word, number, error);
  send_line(line, (size_t)length, -1);
}
