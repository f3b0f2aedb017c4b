/* Outside of the folders that the session may write in, mounts hold files and not pipes, devices or what a descriptor came with from outside. What is opened
 * there is opened by a thread that has Landlock's rules of the program itself, so that it gets what the program would get. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct job {
  int folder;
  const char *name;
  int flags;
  mode_t mode, mask;
  int64_t length; /* of a truncate */
  bool truncates;
  int result;
  bool done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct job *job;
static bool is_ready;

static int carry_out(const struct job *j) {
  /* Elsewhere the thread has that of the caller, if anything is made. */
  if (!is_bare()) umask(j->mask);
  if (j->truncates) return truncate(path_to(j->folder).text, j->length) == 0 ? 0 : -errno;
  const int fd = j->name != NULL ? openat(j->folder, j->name, j->flags, j->mode) : openat(observe.fds, path_to(j->folder).text, j->flags);
  return fd < 0 ? -errno : fd;
}

static void *work(void *nothing) {
  (void)nothing;
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) fail("observe", "floor");
  landlock_apply(observe.plan, LAYER_ALL);
  pthread_mutex_lock(&lock);
  is_ready = true;
  pthread_cond_broadcast(&done);
  for (;;) {
    while (job == NULL || job->done) pthread_cond_wait(&asked, &lock);
    struct job *mine = job;
    pthread_mutex_unlock(&lock);
    mine->result = carry_out(mine);
    pthread_mutex_lock(&lock);
    mine->done = true;
    pthread_cond_broadcast(&done);
  }
  return NULL;
}

void floor_start(void) {
  /* Every thread has the session's rules already. */
  if (is_bare()) return;
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) fail("observe", "thread");
}

void floor_await(void) {
  if (is_bare()) return;
  pthread_mutex_lock(&lock);
  while (!is_ready) pthread_cond_wait(&done, &lock);
  pthread_mutex_unlock(&lock);
}

static int ask(struct job *own) {
  if (is_bare()) return carry_out(own);
  pthread_mutex_lock(&lock);
  while (job != NULL) pthread_cond_wait(&done, &lock);
  job = own;
  pthread_cond_signal(&asked);
  while (!own->done) pthread_cond_wait(&done, &lock);
  job = NULL;
  pthread_cond_broadcast(&done);
  pthread_mutex_unlock(&lock);
  return own->result;
}

int floor_open(int folder, const char *name, int flags, mode_t mode, mode_t mask) {
  struct job own = {.folder = folder, .name = name, .flags = flags | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, .mode = mode, .mask = mask};
  return ask(&own);
}

int floor_truncate(int object, int64_t length) {
  /* Landlock before its third version has no word for that. */
  if (is_bare()) return -EACCES;
  struct job own = {.folder = object, .length = length, .truncates = true};
  return ask(&own);
}

/* --- pipes that nobody reads from yet ------------------------------------------------------------------------------ */

struct wait {
  struct call call;
  int object, flags;
};

#define WAITS_MAX 256
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int waits;

static void count(int by) {
  pthread_mutex_lock(&counting);
  waits += by;
  pthread_mutex_unlock(&counting);
}

static void *wait_for(void *of) {
  struct wait *w = of;
  for (long ms = 1;; ms = ms < 20 ? ms * 2 : 20) {
    const int fd = floor_open(w->object, NULL, w->flags, 0, 0);
    if (fd >= 0) {
      fcntl(fd, F_SETFL, w->flags & ~O_NONBLOCK);
      call_give(&w->call, fd, (w->flags & O_CLOEXEC) != 0);
      break;
    }
    if (fd != -ENXIO || call_is_signalled(&w->call)) {
      call_fail(&w->call, fd != -ENXIO ? -fd : EINTR);
      break;
    }
    if (!call_waits(&w->call)) break;
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
  }
  close(w->object);
  free(w);
  count(-1);
  return NULL;
}

void floor_wait(struct call *call, int object, int flags) {
  struct wait *w = malloc(sizeof *w);
  pthread_t thread;
  pthread_attr_t attributes;
  if (w != NULL) *w = (struct wait){.call = *call, .object = object, .flags = flags};
  count(1);
  bool started = w != NULL && waits < WAITS_MAX && pthread_attr_init(&attributes) == 0;
  if (started) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
    started = pthread_create(&thread, &attributes, wait_for, w) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (started) {
    call->answered = true;
    return;
  }
  count(-1);
  free(w);
  close(object);
  call_fail(call, ENOMEM);
}
