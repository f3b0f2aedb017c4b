/* Listeners inside that the front serves from outside: the proxy hears the session on its own loopback, and no process stands between. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(uint16_t port) {
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 511) != 0) fail("listeners", "listen");
  return fd;
}

/* One message of Node's channel between processes: a line of JSON, and the descriptor with it. */
static void hand_out(uint16_t port) {
  char line[96];
  const int length = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Server\",\"msg\":{\"listener\":%u}}\n", port);
  const int listener = listen_on(port);
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = line, .iov_len = (size_t)length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &listener, sizeof listener);
  if (sendmsg(PLAN_CHANNEL, &message, MSG_NOSIGNAL) != (ssize_t)length) fail("listeners", "hand-over");
  close(listener);
}

void listeners_hand_out(const struct plan *plan) {
  for (size_t i = 0; i < plan->port_count; i++) hand_out(plan->ports[i]);
}
