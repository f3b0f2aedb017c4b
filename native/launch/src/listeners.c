/* Sockets inside that the front serves from outside: the proxy hears the session in its own network, and no process stands between. */
#define _GNU_SOURCE
#include "launch.h"

#include <netinet/in.h>
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

static void hand_out(const struct plan_listener *made, size_t number) {
  channel_hand(made->datagrams ? "dgram.Socket\",\"dgramType\":\"udp4" : "net.Server", "listener", (uint32_t)number, listen_on(made));
}

void listeners_hand_out(const struct plan *plan) {
  for (size_t i = 0; i < plan->listener_count; i++) hand_out(&plan->listeners[i], i);
}
