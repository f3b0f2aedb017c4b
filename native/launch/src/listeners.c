/* Sockets inside that the front serves from outside: the proxy hears the session in its own network, and no process stands between. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(const struct plan_listener *listener) {
  const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(listener->port), .sin_addr.s_addr = htonl(listener->address)};
  const int fd = socket(AF_INET, (listener->datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) fail("listeners", "socket");
  /* One that hears every address stands beside one that hears a single address. No program inside can bind a port below 1024, so that none of them
   * shares it; of others it could take connections. */
  const int yes = 1;
  if (listener->port < IPPORT_RESERVED && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0) fail("listeners", "SO_REUSEPORT");
  if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || (!listener->datagrams && listen(fd, 511) != 0)) fail("listeners", "listen");
  return fd;
}

/* One message of Node's channel between processes: a line of JSON, and the descriptor with it. */
static void hand_out(const struct plan_listener *made, size_t number) {
  char line[112];
  const char *type = made->datagrams ? "dgram.Socket\",\"dgramType\":\"udp4" : "net.Server";
  const int length = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"%s\",\"msg\":{\"listener\":%zu}}\n", type, number);
  const int listener = listen_on(made);
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
  for (size_t i = 0; i < plan->listener_count; i++) hand_out(&plan->listeners[i], i);
}
