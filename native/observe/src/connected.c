/* Who connects to what nd7 serves: read while the caller waits for its answer, so that the process is there and is no other, and told to the front with the two
 * ends by which it knows the connection again. */
#define _GNU_SOURCE
#include "sockets.h"

#include "launch.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process that ends while it is looked at leaves its children to another. */
#define WALKS 4
/* TCP_CLOSE of the kernel: neither connected nor about to be. */
#define STATE_CLOSED 7

/* Upwards to the launcher, whose child this process is. A parent that began after its child is another process by that number. */
static bool walk(pid_t from, struct asker *asker) {
  const pid_t launcher = getppid();
  uint64_t below = UINT64_MAX;
  asker->count = 0;
  for (pid_t pid = from; pid != launcher; asker->count++) {
    pid_t parent;
    unsigned long long start;
    if (asker->count == ASKER_LINE_MAX || pid <= 1 || !process_of(observe.proc, pid, &parent, &start) || start > below) return false;
    asker->line[asker->count].pid = pid;
    asker->line[asker->count].start = below = start;
    pid = parent;
  }
  return asker->count > 0;
}

static void read_name(const char *status, char to[16]) {
  static const char NAME[] = "Name:\t";
  to[0] = '\0';
  if (strncmp(status, NAME, sizeof NAME - 1) == 0) snprintf(to, 16, "%.*s", (int)strcspn(status + sizeof NAME - 1, "\n"), status + sizeof NAME - 1);
}

static void asker_find(const struct call *call, struct asker *asker) {
  char status[512];
  const char *group = caller_file(call, "status", status, sizeof status) == 0 ? value_of(status, "Tgid:") : NULL;
  bool found = false;
  asker->count = 0;
  if (group == NULL) return;
  read_name(status, asker->program);
  for (int i = 0; i < WALKS && !found; i++) found = walk(atoi(group), asker);
  /* Of a line that is not whole nobody could say where it leads. */
  if (!found) asker->count = 0;
}

/* What was found of a thread: who connects does so again and again. It holds for a moment, and while the thread is the same and has the same parent: in whose
 * command's tree it stands does not change, and whether it stands below the agent nobody decides by. */
#define KNOWN_THREADS 64u
#define KNOWN_NS 1000000000
static struct known_thread {
  pid_t thread, parent;
  unsigned long long start;
  int64_t until;
  struct asker asker;
} known[KNOWN_THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void asker_read(const struct call *call, struct asker *asker) {
  struct known_thread *at = &known[(unsigned)call->pid % KNOWN_THREADS];
  const int64_t now = now_ns();
  const struct end to = asker->to;
  pid_t parent;
  unsigned long long start;
  bool is_known = false;
  if (!process_of(observe.proc, call->pid, &parent, &start)) return;
  pthread_mutex_lock(&lock);
  if (at->thread == call->pid && at->start == start && at->parent == parent && now < at->until) {
    *asker = at->asker;
    is_known = true;
  }
  pthread_mutex_unlock(&lock);
  if (!is_known) asker_find(call, asker);
  asker->is_wanted = true;
  asker->to = to;
  if (!call_waits(call)) asker->count = 0;
  if (is_known || asker->count == 0) return;
  pthread_mutex_lock(&lock);
  *at = (struct known_thread){.thread = call->pid, .parent = parent, .start = start, .until = now + KNOWN_NS, .asker = *asker};
  pthread_mutex_unlock(&lock);
}

/* The end in the older family, as the proxy's listeners have it: newer sockets may mean these, too. */
static bool end_of(const union address *address, struct end *end) {
  if (address->head.sa_family == AF_INET) {
    *end = (struct end){ntohl(address->v4.sin_addr.s_addr), ntohs(address->v4.sin_port)};
    return true;
  }
  if (address->head.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr)) return false;
  memcpy(&end->address, address->v6.sin6_addr.s6_addr + 12, sizeof end->address);
  *end = (struct end){ntohl(end->address), ntohs(address->v6.sin6_port)};
  return true;
}

/* As the kernel reads it. */
static bool meant_end(const union address *address, struct end *end) {
  if (!end_of(address, end)) return false;
  if (end->address == INADDR_ANY) end->address = INADDR_LOOPBACK;
  return true;
}

static bool own_end(int fd, struct end *end) {
  union address address;
  socklen_t length = ADDRESS_MAX;
  memset(&address, 0, sizeof address);
  return getsockname(fd, &address.head, &length) == 0 && end_of(&address, end) && end->port != 0;
}

/* One that is under way already was told of when it began. */
static bool begins(int fd) {
  struct tcp_info info;
  socklen_t length = sizeof info;
  memset(&info, 0, sizeof info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == STATE_CLOSED;
}

void asker_begin(const struct call *call, struct dial *d) {
  struct end own;
  d->asker.is_wanted = meant_end(&d->address, &d->asker.to) && sockets_served(d->asker.to.port) && begins(d->fd);
  if (!d->asker.is_wanted) return;
  asker_read(call, &d->asker);
  if (!own_end(d->fd, &own)) return;
  /* A program that has chosen its end could have chosen one of which something was told before: what is told now comes before the connection. */
  if (own.address != INADDR_ANY) asker_tell(d);
  else channel_connected(&(struct asker){.to = d->asker.to}, &own);
}

void asker_tell(struct dial *d) {
  struct end own;
  if (!d->asker.is_wanted || !own_end(d->fd, &own)) return;
  d->asker.is_wanted = false;
  channel_connected(&d->asker, &own);
}
