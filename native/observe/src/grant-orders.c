/* What is asked for of grants, by the front's frames and by what changes on the disk outside: obeyed one after the other by a thread of its own. */
#define _GNU_SOURCE
#include "grant.h"

#include "launch.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t parts_of(const char *path) {
  uint32_t parts = 0;
  for (; *path != '\0'; path++) parts += *path == '/';
  return parts;
}

enum wanted { WANTED_WIDEN, WANTED_NARROW, WANTED_REFRESH };

struct order {
  struct order *next;
  enum wanted wanted;
  struct grant grant;
};

#define ORDERS_MAX 1024u
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER;
static struct order *first, **last = &first;
static size_t waiting;

/* Holds `lock`. */
static bool is_waiting(const struct order *order) {
  const struct order *o = first;
  while (o != NULL && (o->wanted != order->wanted || o->grant.id != order->grant.id)) o = o->next;
  return o != NULL;
}

static bool put(struct order *order) {
  if (order == NULL) return false;
  pthread_mutex_lock(&lock);
  /* Names that change all the time are looked at once more, not once each. */
  const bool has_room = waiting < ORDERS_MAX && !(order->wanted == WANTED_REFRESH && is_waiting(order));
  if (has_room) {
    waiting++;
    *last = order;
    last = &order->next;
    pthread_cond_signal(&ordered);
  }
  pthread_mutex_unlock(&lock);
  return has_room;
}

bool grants_widen(const struct widening *widening) {
  struct order *order = calloc(1, sizeof *order);
  char *path = strdup(widening->path);
  if (order == NULL || path == NULL) return false;
  order->grant = (struct grant){.id = widening->id, .what = widening->what, .below = widening->below, .parts = parts_of(path), .length = strlen(path), .path = path, .watch = -1, .source = -1, .tree = -1};
  return put(order);
}

bool grants_narrow(uint32_t id) {
  struct order *order = calloc(1, sizeof *order);
  if (order != NULL) *order = (struct order){.wanted = WANTED_NARROW, .grant.id = id};
  return put(order);
}

void order_refresh(uint32_t id) {
  struct order *order = calloc(1, sizeof *order);
  if (order == NULL) return;
  *order = (struct order){.wanted = WANTED_REFRESH, .grant.id = id};
  if (!put(order)) free(order);
}

static struct order *get(void) {
  pthread_mutex_lock(&lock);
  while (first == NULL) pthread_cond_wait(&ordered, &lock);
  struct order *order = first;
  first = order->next;
  if (first == NULL) last = &first;
  waiting--;
  pthread_mutex_unlock(&lock);
  return order;
}

static void *work(void *nothing) {
  (void)nothing;
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) _exit(125);
  for (;;) {
    struct order *order = get();
    const uint32_t id = order->grant.id;
    if (order->wanted == WANTED_NARROW) {
      channel_narrowed(id, grant_narrow(id));
    } else if (order->wanted == WANTED_REFRESH) {
      grant_refresh(id);
    } else {
      const int error = grant_widen(&order->grant);
      if (error != 0) grant_free(&order->grant);
      channel_widened(id, error);
    }
    free(order);
  }
  return NULL;
}

void grants_start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) fail("observe", "thread");
}
