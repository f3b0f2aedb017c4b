/* Connects to the first address that answers: each next one is started when the last failed or took 250 ms (RFC 8305 section 5). */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEXT_AFTER_MS 250

/* A socket that connects, or has; -1 with errno. */
static int start(const struct address *address) {
  static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(address->port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(address->port)};
  const bool is_four = memcmp(address->bytes, mapped, sizeof mapped) == 0;
  memcpy(&four.sin_addr, address->bytes + sizeof mapped, sizeof four.sin_addr);
  memcpy(&six.sin6_addr, address->bytes, sizeof six.sin6_addr);
  const int fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const struct sockaddr *to = is_four ? (const struct sockaddr *)&four : (const struct sockaddr *)&six;
  if (connect(fd, to, is_four ? sizeof four : sizeof six) == 0 || errno == EINPROGRESS) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool is_waiting(const struct link *link) {
  for (size_t i = 0; i < link->next; i++)
    if (link->tries[i] >= 0) return true;
  return false;
}

static void fail(struct link *link, int error) {
  dial_end(link, -1);
  link_enter(link, ASKED);
  front_number(TOLD_FAILED, link_id(link), (uint32_t)error);
}

/* Starts the next address, and those after it as long as they fail at once. */
static void go_on(struct link *link) {
  while (link->next < link->dial.count) {
    const size_t attempt = link->next++;
    link->tries[attempt] = start(&link->dial.addresses[attempt]);
    if (link->tries[attempt] >= 0) {
      link->next_at = now_ms() + NEXT_AFTER_MS;
      link_watch(link, link->tries[attempt], SLOT_TRIES + (unsigned)attempt, EPOLL_CTL_ADD);
      return;
    }
    link->last_error = errno;
  }
  if (!is_waiting(link)) fail(link, link->last_error);
}

void dial_begin(struct link *link) {
  link->next = 0;
  link->last_error = ETIMEDOUT;
  for (size_t i = 0; i < ADDRESSES_MAX; i++) link->tries[i] = -1;
  go_on(link);
}

void dial_end(struct link *link, int kept) {
  for (size_t i = 0; i < link->next; i++) {
    if (link->tries[i] >= 0 && link->tries[i] != kept) close(link->tries[i]);
    link->tries[i] = -1;
  }
}

void dial_event(struct link *link, size_t attempt, bool has_failed) {
  const int fd = attempt < ADDRESSES_MAX ? link->tries[attempt] : -1;
  if (link->state != DIALLING || fd < 0) return;
  if (!has_failed) {
    dial_end(link, fd);
    link->ends[1] = fd;
    link->won = attempt;
    link_joined(link);
    return;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  close(fd);
  link->tries[attempt] = -1;
  link->last_error = error;
  go_on(link);
}

void dial_look(struct link *link, int64_t now) {
  if (now >= link->until) fail(link, 0);
  else if (now >= link->next_at && link->next < link->dial.count) go_on(link);
}
