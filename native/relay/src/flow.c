/* The bytes of a tunnel, in one direction. What an end does not take at once waits here, and nothing more is read for it meanwhile. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* After so many pieces others have their turn. */
#define PIECES 8

static unsigned char piece[CHUNK];

static bool is_later(void) { return errno == EAGAIN || errno == EINTR; }

bool flow_flush(struct link *link, unsigned direction) {
  struct flow *flow = &link->flows[direction];
  const int to = link->ends[1 - direction];
  while (flow->length > 0) {
    const ssize_t n = send(to, link_store(link, direction) + flow->at, flow->length, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (!is_later()) link_drop(link);
      return false;
    }
    flow->at += (uint32_t)n;
    flow->length -= (uint32_t)n;
    flow->moved += (uint64_t)n;
  }
  flow->at = 0;
  return true;
}

/* The second end is that of both. */
static void end(struct link *link, struct flow *flow, int to, const struct flow *other) {
  if (other->shut) return link_drop(link);
  if (!flow->shut) shutdown(to, SHUT_WR);
  flow->shut = true;
}

void flow_move(struct link *link, unsigned direction) {
  struct flow *flow = &link->flows[direction];
  const int from = link->ends[direction], to = link->ends[1 - direction];
  for (int i = 0; i < PIECES; i++) {
    if (!flow_flush(link, direction)) return;
    if (flow->ended) return end(link, flow, to, &link->flows[1 - direction]);
    const ssize_t n = recv(from, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (!is_later()) link_drop(link);
      return;
    }
    if (n == 0) {
      flow->ended = true;
      continue;
    }
    ssize_t sent = send(to, piece, (size_t)n, MSG_NOSIGNAL);
    if (sent < 0 && !is_later()) return link_drop(link);
    if (sent < 0) sent = 0;
    flow->moved += (uint64_t)sent;
    if (sent < n) {
      flow->length = (uint32_t)(n - sent);
      memcpy(link_store(link, direction), piece + sent, flow->length);
      return link_watch(link, to, 1 - direction, EPOLL_CTL_MOD);
    }
    /* Less than was asked for is all there was: an event tells of more, and of the end. */
    if ((size_t)n < sizeof piece && !flow->ending) return;
  }
  /* Events come by changes, and there need be none: ask for one. */
  link_watch(link, from, direction, EPOLL_CTL_MOD);
}
