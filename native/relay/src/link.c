/* One connection from its first byte to its end. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define INDEX_BITS 10
#define LOOK_MS 50
static const char ESTABLISHED[] = "HTTP/1.1 200 Connection established\r\n\r\n";

struct link links[LINKS_MAX];
/* Untouched pages of it take no memory. */
static unsigned char stores[LINKS_MAX][2][CHUNK];
static int epoll;
static uint32_t most_links, link_count, timed;
static int64_t patience_ms;

int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t index_of(const struct link *link) { return (uint32_t)(link - links); }

uint32_t link_id(const struct link *link) { return link->generation << INDEX_BITS | index_of(link); }

unsigned char *link_store(const struct link *link, unsigned direction) { return stores[index_of(link)][direction]; }

void links_begin(int poller, uint32_t most, int64_t patience) {
  epoll = poller;
  most_links = most < LINKS_MAX ? most : LINKS_MAX;
  patience_ms = patience;
}

/* That an end takes bytes is of interest where some wait for it, and where it is not connected yet. */
void link_watch(const struct link *link, int fd, unsigned slot, int operation) {
  const uint32_t out = slot >= SLOT_TRIES || link->flows[1 - slot].length > 0 ? EPOLLOUT : 0;
  struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET | out, .data.u64 = (uint64_t)link_id(link) << 8 | slot};
  if (epoll_ctl(epoll, operation, fd, &event) != 0) _exit(1);
}

static bool is_timed(enum state state) { return state == FIRST || state == DIALLING || state == HELLO || state == LAST; }

void link_enter(struct link *link, enum state state) {
  timed += (uint32_t)is_timed(state) - (uint32_t)is_timed(link->state);
  link->state = state;
  if (is_timed(state)) link->until = now_ms() + patience_ms;
}

static void forget(struct link *link) {
  for (int i = 0; i < 2; i++) {
    if (link->ends[i] >= 0) close(link->ends[i]);
    link->ends[i] = -1;
  }
  link_enter(link, FREE);
  link->generation++;
  link_count--;
}

void link_drop(struct link *link) {
  const uint32_t id = link_id(link);
  struct moved moved = {.bytes = {link->flows[0].moved, link->flows[1].moved}};
  const int64_t ms = link->since == 0 ? 0 : now_ms() - link->since;
  moved.ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
  const bool was_there = link->since != 0;
  if (link->state == DIALLING) dial_end(link, -1);
  forget(link);
  front_ended(id, was_there ? &moved : NULL);
}

static void drop_all(void) {
  for (struct link *link = links; link < links + LINKS_MAX; link++)
    if (link->state != FREE) link_drop(link);
  front_flush();
}

void link_reset(struct link *link) {
  const struct linger at_once = {.l_onoff = 1};
  setsockopt(link->ends[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  link_drop(link);
}

static void hand(struct link *link) {
  /* It is the front's: an event of it would be nobody's here as long as its descriptor lives there. */
  epoll_ctl(epoll, EPOLL_CTL_DEL, link->ends[0], NULL);
  front_hand(link_id(link), link->listener, link->ends[0]);
  forget(link);
}

/* By the two addresses the front knows who has connected, and where the program does not speak first, what it means. */
static void ask(struct link *link, const unsigned char *bytes, size_t length) {
  struct sockaddr_in at = {0};
  socklen_t size = sizeof at;
  if (getsockname(link->ends[0], (struct sockaddr *)&at, &size) != 0 || at.sin_family != AF_INET) return link_drop(link);
  unsigned char body[20];
  put32(body, link->listener);
  put32(body + 4, ntohl(at.sin_addr.s_addr));
  put32(body + 8, ntohs(at.sin_port));
  put32(body + 12, ntohl(link->from.sin_addr.s_addr));
  put32(body + 16, ntohs(link->from.sin_port));
  link_enter(link, ASKED);
  front_tell(TOLD_ASK, link_id(link), body, sizeof body, bytes, length);
}

/* The program has said something: what is no whole request for a tunnel the front reads itself. At listeners where it was asked already it wants to see this. */
static void first(struct link *link) {
  static unsigned char bytes[FIRST_MAX];
  static const char CONNECT[] = "CONNECT ";
  const ssize_t n = recv(link->ends[0], bytes, sizeof bytes, MSG_PEEK);
  link->seen = n > 0 ? (uint32_t)n : 0;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return link_drop(link);
  const bool is_whole = (size_t)n > sizeof CONNECT && memcmp(bytes, CONNECT, sizeof CONNECT - 1) == 0 && memmem(bytes, (size_t)n, "\r\n\r\n", 4) != NULL;
  if (link->needs > 0) ask(link, bytes, 1);
  else if (is_whole) ask(link, bytes, (size_t)n);
  else hand(link);
}

static void join(struct link *link);

/* Takes what the program says and shows it to the front when there is enough, unless it is plainly right. */
static void hello(struct link *link) {
  struct flow *out = &link->flows[0];
  if (link->is_shown) return;
  while (out->length < FIRST_MAX) {
    const ssize_t n = recv(link->ends[0], link_store(link, 0) + out->length, FIRST_MAX - out->length, 0);
    if (n < 0 && errno == EINTR) continue;
    /* Less than was asked for is all there was: an event tells of more. */
    if ((n < 0 && errno == EAGAIN) || (n > 0 && (size_t)n < FIRST_MAX - out->length)) out->heard = false;
    if (n < 0 && errno == EAGAIN) break;
    if (n == 0) out->ending = true;
    if (n == 0 && out->length >= link->needs) break;
    if (n <= 0) {
      link->is_shown = true;
      front_tell(TOLD_SILENT, link_id(link), NULL, 0, NULL, 0);
      return;
    }
    out->length += (uint32_t)n;
    if (out->length >= link->needs) break;
  }
  if (out->length < link->needs) return;
  if (hello_is_for(link_store(link, 0), out->length, link->dial.name, link->dial.name_length)) return join(link);
  link->is_shown = true;
  front_tell(TOLD_HELLO, link_id(link), NULL, 0, link_store(link, 0), out->length);
}

static void join(struct link *link) {
  const uint32_t generation = link->generation;
  link_enter(link, JOINED);
  const struct flow *out = &link->flows[0];
  if (out->heard || out->ending || (!link->dial.hello && link->seen > link->dial.head)) flow_move(link, 0);
  else if (out->length > 0) flow_flush(link, 0);
  if (link->generation != generation) return;
  /* A hello that does not go out as a whole. */
  if (link->flows[0].length > 0) link_watch(link, link->ends[1], SLOT_OTHER, EPOLL_CTL_MOD);
  if (link->flows[1].heard) flow_move(link, 1);
}

static bool take_head(struct link *link, size_t length) {
  unsigned char head[FIRST_MAX];
  return length == 0 || recv(link->ends[0], head, length, 0) == (ssize_t)length;
}

void link_joined(struct link *link) {
  const struct dial *dial = &link->dial;
  link->since = now_ms();
  if (!take_head(link, dial->head)) return link_drop(link);
  /* The buffer of a connection that nothing was written to has room for a line. */
  if (dial->established && send(link->ends[0], ESTABLISHED, sizeof ESTABLISHED - 1, MSG_NOSIGNAL) != sizeof ESTABLISHED - 1) return link_drop(link);
  if (!dial->hello) return join(link);
  link_enter(link, HELLO);
  link->needs = 1;
  if (link->flows[0].heard || link->seen > dial->head) hello(link);
}

void link_take(int fd, const struct sockaddr_in *from, uint32_t listener, bool at_once) {
  struct link *link = links;
  if (link_count >= most_links) {
    close(fd);
    return;
  }
  while (link->state != FREE) link++;
  link_count++;
  *link = (struct link){.state = FREE, .generation = link->generation, .listener = listener, .from = *from, .at_once = at_once, .ends = {fd, -1}};
  link_enter(link, FIRST);
  link_watch(link, fd, SLOT_PROGRAM, EPOLL_CTL_ADD);
  if (at_once) ask(link, NULL, 0);
}

/* Discards what still comes, so that the last that was said is read before a reset. */
static void drain(struct link *link) {
  unsigned char bytes[4096];
  ssize_t n;
  for (int i = 0; i < 16; i++)
    if ((n = recv(link->ends[0], bytes, sizeof bytes, 0)) <= 0) break;
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) link_drop(link);
}

static void say_last(struct link *link, const struct frame *frame) {
  link_enter(link, LAST);
  if (send(link->ends[0], frame->body, frame->length, MSG_NOSIGNAL) != (ssize_t)frame->length) return link_drop(link);
  shutdown(link->ends[0], SHUT_WR);
  drain(link);
}

void link_obey(const struct frame *frame) {
  if (frame->kind == ORDER_OVER) return drop_all();
  struct link *link = &links[frame->id & (LINKS_MAX - 1)];
  /* It has ended meanwhile. */
  if (link->state == FREE || link_id(link) != frame->id) return;
  uint32_t number = 0;
  if (frame->kind == ORDER_CUT && number_parse(frame, &number)) return number == 1 ? link_reset(link) : link_drop(link);
  if (frame->kind == ORDER_HAND && link->state == ASKED) return hand(link);
  if (frame->kind == ORDER_LAST && link->state == ASKED) return say_last(link, frame);
  if (frame->kind == ORDER_WAIT && link->state == ASKED) {
    link->needs = 1;
    link_enter(link, FIRST);
    return first(link);
  }
  if (frame->kind == ORDER_DIAL && link->state == ASKED && dial_parse(frame, &link->dial)) {
    link_enter(link, DIALLING);
    return dial_begin(link);
  }
  if (frame->kind == ORDER_NEED && link->state == HELLO && number_parse(frame, &number)) {
    link->needs = number;
    link->is_shown = false;
    return hello(link);
  }
  if (frame->kind == ORDER_GO && link->state == HELLO) return join(link);
  _exit(1); /* no word of a front's */
}

void link_event(uint64_t tag, uint32_t events) {
  const uint32_t id = (uint32_t)(tag >> 8), of = (uint32_t)(tag & 0xff), slot = of == SLOT_PROGRAM ? SLOT_PROGRAM : SLOT_OTHER;
  struct link *link = &links[id & (LINKS_MAX - 1)];
  if (link->state == FREE || link_id(link) != id) return;
  pace_seen(index_of(link));
  const bool is_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link->flows[slot].ending = true;
  if (link->state == DIALLING && of >= SLOT_TRIES) {
    /* What is there with it no event tells of again. */
    if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) link->flows[SLOT_OTHER].heard = true;
    return dial_event(link, of - SLOT_TRIES, is_gone);
  }
  /* An address that lost, in the same turn. */
  if (of >= SLOT_TRIES && of - SLOT_TRIES != link->won) return;
  switch (link->state) {
  case FIRST:
    return is_gone ? link_drop(link) : first(link);
  case ASKED:
  case DIALLING:
    link->flows[slot].heard = true;
    /* Whoever asked has gone. */
    if (is_gone) link_drop(link);
    return;
  case HELLO:
    link->flows[slot].heard = true;
    if (slot == SLOT_PROGRAM) hello(link);
    else if (is_gone) link_drop(link);
    return;
  case LAST:
    return drain(link);
  case JOINED:
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) flow_move(link, slot);
    /* An end that takes again what it did not. */
    if (link->state == JOINED && link_id(link) == id && (events & EPOLLOUT) != 0 && link->flows[1 - slot].length > 0) flow_move(link, 1 - slot);
    return;
  case FREE:
    return;
  }
}

int links_look(void) {
  if (timed == 0) return -1;
  static int64_t looked;
  const int64_t now = now_ms();
  if (now - looked < LOOK_MS) return (int)(LOOK_MS - (now - looked));
  looked = now;
  for (struct link *link = links; link < links + LINKS_MAX; link++) {
    if (link->state == DIALLING) dial_look(link, now);
    else if (is_timed(link->state) && now >= link->until) {
      if (link->state != HELLO) link_drop(link);
      else if (!link->is_shown) {
        link->is_shown = true;
        front_tell(TOLD_SILENT, link_id(link), NULL, 0, NULL, 0);
      }
    }
  }
  return timed == 0 ? -1 : LOOK_MS;
}
