/* Whose turn it is to receive calls. The kernel wakes all who wait for one, so that one thread waits and the others stand by: who has received a call answers it
 * and receives the next. A thread that waits in a call for a while loses its turn to one that stands by; that is looked after only as long as calls come. Two that
 * receive at once do no harm: they only wake each other. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* From one look to the next; so many without a call are the last. */
#define LOOK_NS 3000000
#define LOOKS 100u
/* Where the holder is found waiting for a disk, so many of the next calls are received by all threads, side by side. */
#define SPREAD 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER, woken = PTHREAD_COND_INITIALIZER;
static bool is_taken;
/* Each turn has a number, the holder's is the last one; 0 is nobody's. */
static atomic_uint turn;
static __thread unsigned own;
/* Odd while the holder is in a call; another number for each. */
static atomic_uint calls, spread;
static atomic_int holder; /* its thread */
static atomic_bool is_unwatched;

static bool has_turn(void) { return own != 0 && own == atomic_load(&turn); }

void turn_take(void) {
  if (has_turn()) return;
  pthread_mutex_lock(&lock);
  while (is_taken) pthread_cond_wait(&passed, &lock);
  is_taken = true;
  while ((own = atomic_fetch_add(&turn, 1) + 1) == 0) continue;
  atomic_store(&holder, (int)syscall(SYS_gettid));
  pthread_mutex_unlock(&lock);
}

/* Takes it from whoever has the number. */
static void pass(unsigned number) {
  pthread_mutex_lock(&lock);
  if (is_taken && number == atomic_load(&turn)) {
    is_taken = false;
    atomic_fetch_add(&turn, 1);
    pthread_cond_signal(&passed);
  }
  pthread_mutex_unlock(&lock);
}

static void wake_watch(void) {
  pthread_mutex_lock(&lock);
  atomic_store(&is_unwatched, false);
  pthread_cond_signal(&woken);
  pthread_mutex_unlock(&lock);
}

void turn_begin(void) {
  if (!has_turn()) return;
  const unsigned left = atomic_load(&spread);
  if (left > 0) {
    atomic_store(&spread, left - 1);
    pass(own);
    return;
  }
  atomic_fetch_or(&calls, 1);
  if (atomic_load(&is_unwatched)) wake_watch();
}

void turn_end(void) {
  if (has_turn()) atomic_fetch_add(&calls, 1);
}

/* As /proc has it: R where it runs or would, D where it waits for a disk, S for anything else. */
static char state_of(int thread) {
  char path[48], text[128];
  snprintf(path, sizeof path, "self/task/%d/stat", thread);
  const int fd = openat(observe.proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 'R';
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  const char *end = strrchr(text, ')');
  return end != NULL && end[1] == ' ' ? end[2] : 'R';
}

static void *watch(void *nothing) {
  (void)nothing;
  const struct timespec look = {.tv_nsec = LOOK_NS};
  unsigned seen = 0, before = 0, quiet = 0;
  for (;;) {
    const unsigned now = atomic_load(&calls), by = atomic_load(&turn);
    const bool is_same = now == seen && by == before, in_call = (now & 1) != 0;
    const char state = in_call ? state_of(atomic_load(&holder)) : 'R';
    if (state == 'D') atomic_store(&spread, SPREAD);
    if (is_same && (state == 'S' || state == 'D')) {
      pass(by);
      atomic_fetch_add(&calls, 1);
    }
    quiet = is_same && !in_call ? quiet + 1 : 0;
    seen = now;
    before = by;
    if (quiet == LOOKS) {
      pthread_mutex_lock(&lock);
      atomic_store(&is_unwatched, true);
      /* One that began just before did not see it. */
      while (atomic_load(&is_unwatched) && (atomic_load(&calls) & 1) == 0) pthread_cond_wait(&woken, &lock);
      atomic_store(&is_unwatched, false);
      pthread_mutex_unlock(&lock);
      quiet = 0;
    }
    nanosleep(&look, NULL);
  }
  return NULL;
}

void turns_start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL) != 0) fail("observe", "thread");
}
