/* nd7-relay PATIENCE-MS MOST KINDS: started by the proxy and by nobody else; a letter for each listener, `f` where a program speaks first, `a` where the front is asked
 * at once. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 128

static const char *kinds;
static int listeners[LISTENERS_MAX];
/* Closed for a moment where there are no descriptors: a connection that cannot be taken would be told of for ever. */
static int spare;

static void watch(int poller, int fd, uint64_t tag) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) _exit(1);
}

/* One at a time: as long as more wait, there is an event. */
static void accept_from(uint32_t listener) {
  struct sockaddr_in from = {0};
  socklen_t size = sizeof from;
  int fd = accept4(listeners[listener], (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    close(spare);
    fd = accept4(listeners[listener], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) close(fd);
    spare = dup(FRONT_CHANNEL);
    return;
  }
  if (fd >= 0) link_take(fd, &from, listener, kinds[listener] == 'a');
}

static void serve(int poller) {
  for (;;) {
    struct epoll_event events[EVENTS];
    const int front = front_look(), timed = links_look();
    const int n = epoll_wait(poller, events, EVENTS, front < 0 || (timed >= 0 && timed < front) ? timed : front);
    pace_look();
    for (int i = 0; i < n; i++) {
      const uint64_t tag = events[i].data.u64;
      if (tag == TAG_FRONT) front_hear();
      else if (tag == TAG_HANDLES) front_acknowledged();
      else if (tag >= TAG_LISTENERS) accept_from((uint32_t)(tag - TAG_LISTENERS));
      else link_event(tag, events[i].events);
    }
  }
}

static long number(const char *text, long most) {
  char *end = NULL;
  const long value = strtol(text, &end, 10);
  return *text == '\0' || *end != '\0' || value < 1 || value > most ? -1 : value;
}

int main(int argc, char **argv) {
  const long patience = argc == 4 ? number(argv[1], 1 << 30) : -1, most = argc == 4 ? number(argv[2], 1 << 30) : -1;
  const size_t count = argc == 4 ? strlen(argv[3]) : 0;
  if (patience < 0 || most < 0 || count == 0 || count > LISTENERS_MAX || strspn(argv[3], "fa") != count) {
    dprintf(STDERR_FILENO, "nd7-relay is a part of nd7's proxy, which starts it\n");
    return 2;
  }
  kinds = argv[3];
  /* What whoever started nd7 has left open is for the program inside, if for anybody. */
  if (syscall(SYS_close_range, HANDLE_CHANNEL + 1u, ~0u, 0) != 0) return 1;
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  spare = dup(FRONT_CHANNEL);
  if (poller < 0 || spare < 0) return 1;
  links_begin(poller, (uint32_t)most, patience);
  for (uint32_t i = 0; i < count; i++) {
    /* What is accepted has it from its listener. */
    const int yes = 1;
    listeners[i] = front_listener();
    setsockopt(listeners[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    watch(poller, listeners[i], TAG_LISTENERS + i);
  }
  watch(poller, FRONT_CHANNEL, TAG_FRONT);
  watch(poller, HANDLE_CHANNEL, TAG_HANDLES);
  pace_begin();
  harden();
  serve(poller);
}
