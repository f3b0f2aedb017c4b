/* The front: it decides, and takes the connections that are no tunnels. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned char heard[16 << 10];
static size_t heard_length;

static void wait_for(int fd, short events) {
  struct pollfd p = {.fd = fd, .events = events};
  poll(&p, 1, -1);
}

/* So long it does not hear of ends: most come with something else to say. */
#define ENDS_MS 50

/* Ends that the front has not heard of. */
#define END_BODY ((size_t)20)
static unsigned char ends[64 * (FRAME_HEAD + END_BODY)];
static size_t ends_length;
static int64_t ends_since;

/* Whole frames only: a front that does not read keeps us waiting, one that has gone ends us. */
static void send_all(struct iovec *parts, size_t count) {
  for (size_t at = 0; at < count;) {
    const struct msghdr message = {.msg_iov = parts + at, .msg_iovlen = count - at};
    ssize_t n = sendmsg(FRONT_CHANNEL, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      wait_for(FRONT_CHANNEL, POLLOUT);
      continue;
    }
    if (n < 0) _exit(0);
    for (; at < count && (size_t)n >= parts[at].iov_len; at++) n -= (ssize_t)parts[at].iov_len;
    if (at == count) return;
    parts[at].iov_base = (char *)parts[at].iov_base + n;
    parts[at].iov_len -= (size_t)n;
  }
}

static void put_head(unsigned char *head, enum told kind, uint32_t id, size_t length) {
  put32(head, (uint32_t)(FRAME_HEAD - 4 + length));
  put32(head + 4, kind);
  put32(head + 8, id);
}

void front_tell(enum told kind, uint32_t id, const void *body, size_t length, const void *bytes, size_t bytes_length) {
  unsigned char head[FRAME_HEAD];
  put_head(head, kind, id, length + bytes_length);
  struct iovec parts[] = {{ends, ends_length}, {head, sizeof head}, {(void *)(uintptr_t)body, length}, {(void *)(uintptr_t)bytes, bytes_length}};
  ends_length = 0;
  send_all(parts, sizeof parts / sizeof *parts);
}

void front_flush(void) {
  if (ends_length == 0) return;
  struct iovec part = {ends, ends_length};
  ends_length = 0;
  send_all(&part, 1);
}

int front_look(void) {
  if (ends_length == 0) return -1;
  const int64_t left = ends_since + ENDS_MS - now_ms();
  if (left > 0) return (int)left;
  front_flush();
  return -1;
}

void front_ended(uint32_t id, const struct moved *moved) {
  const size_t length = moved == NULL ? 0 : END_BODY;
  if (sizeof ends - ends_length < FRAME_HEAD + length) front_flush();
  if (ends_length == 0) ends_since = now_ms();
  unsigned char *at = ends + ends_length;
  put_head(at, TOLD_ENDED, id, length);
  if (moved != NULL) {
    put64(at + FRAME_HEAD, moved->bytes[0]);
    put64(at + FRAME_HEAD + 8, moved->bytes[1]);
    put32(at + FRAME_HEAD + 16, moved->ms);
  }
  ends_length += FRAME_HEAD + length;
}

void front_number(enum told kind, uint32_t id, uint32_t number) {
  unsigned char body[4];
  put32(body, number);
  front_tell(kind, id, body, sizeof body, NULL, 0);
}

/* As a child process of Node's that is one itself would send it. A connection that cannot be sent ends here. */
void front_hand(uint32_t id, uint32_t listener, int fd) {
  char line[128];
  const int length = snprintf(line, sizeof line, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"handed\":%u,\"listener\":%u}}\n", id, listener);
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
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ssize_t n;
  while ((n = sendmsg(HANDLE_CHANNEL, &message, MSG_NOSIGNAL)) < 0 && (errno == EAGAIN || errno == EINTR))
    if (errno == EAGAIN) wait_for(HANDLE_CHANNEL, POLLOUT);
  if (n < 0 && errno != ETOOMANYREFS) _exit(0);
  if (n < 0) front_ended(id, NULL);
}

/* Node sends a handle when the one before was acknowledged, each with a line that says what we know. */
int front_listener(void) {
  static const char ACKNOWLEDGED[] = "{\"cmd\":\"NODE_HANDLE_ACK\"}\n";
  int fd = -1;
  bool is_whole = false;
  while (fd < 0 || !is_whole) {
    char line[1024];
    union {
      struct cmsghdr header;
      char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = line, .iov_len = sizeof line};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const ssize_t n = recvmsg(HANDLE_CHANNEL, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      wait_for(HANDLE_CHANNEL, POLLIN);
      continue;
    }
    if (n <= 0) _exit(0);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof fd))
      memcpy(&fd, CMSG_DATA(header), sizeof fd);
    is_whole = line[n - 1] == '\n';
  }
  if (send(HANDLE_CHANNEL, ACKNOWLEDGED, sizeof ACKNOWLEDGED - 1, MSG_NOSIGNAL) != sizeof ACKNOWLEDGED - 1) _exit(0);
  return fd;
}

void front_acknowledged(void) {
  char dropped[4096];
  const ssize_t n = recv(HANDLE_CHANNEL, dropped, sizeof dropped, MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) _exit(0);
}

void front_hear(void) {
  const ssize_t n = recv(FRONT_CHANNEL, heard + heard_length, sizeof heard - heard_length, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) _exit(0);
  heard_length += (size_t)n;
  size_t at = 0;
  for (;;) {
    struct frame frame;
    const ssize_t size = frame_parse(heard + at, heard_length - at, &frame);
    if (size < 0) _exit(1);
    if (size == 0) break;
    link_obey(&frame);
    at += (size_t)size;
  }
  memmove(heard, heard + at, heard_length - at);
  heard_length -= at;
}
