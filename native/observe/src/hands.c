/* What is done where a grant lets it be done, in a session without namespaces. The supervisor is under the session's own rules of Landlock, and a domain cannot be
 * widened. So one thread of it has stayed outside of them. It does nothing but make others: with each change of the grants one that is under the session's rules
 * and those of the grants, and nothing else is done by that. What was looked at and judged, and who asked, is the calling thread's business. docs/adr/0037. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { OPEN, FOLDER, NODE, SYMLINK, LINK, RENAME, UNLINK, REOPEN, TRUNCATE };

struct act {
  enum kind kind;
  int folder, other;
  const char *name, *other_name;
  int flags;
  mode_t mode, mask;
  dev_t device;
  int64_t length;
  int result, error;
  bool is_done;
};

/* One hand at a time, and one act. */
static struct hand {
  int rules;
  bool is_wanted; /* it is to be made */
  bool is_ready, is_over, has_left;
  int error;
} hand = {.has_left = true};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct act *asked;
static bool is_apart;

static int carry_out(const struct act *a) {
  switch (a->kind) {
    case OPEN: return openat(a->folder, a->name, a->flags, a->mode);
    case FOLDER: return mkdirat(a->folder, a->name, a->mode);
    case NODE: return mknodat(a->folder, a->name, a->mode, a->device);
    case SYMLINK: return symlinkat(a->other_name, a->folder, a->name);
    case LINK: return linkat(a->other, a->other_name, a->folder, a->name, a->flags);
    case RENAME: return renameat2(a->folder, a->name, a->other, a->other_name, (unsigned)a->flags);
    case UNLINK: return unlinkat(a->folder, a->name, a->flags);
    case REOPEN: return openat(observe.fds, path_to(a->folder).text, a->flags);
    default: return truncate(path_to(a->folder).text, a->length);
  }
}

static void *serve(void *nothing) {
  (void)nothing;
  /* Its umask is that of whoever it acts for, its working folder where descriptors have their paths. */
  int error = unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0 ? errno : landlock_enter(hand.rules);
  close(hand.rules);
  pthread_mutex_lock(&lock);
  hand.error = error;
  hand.is_ready = error == 0;
  pthread_cond_broadcast(&changed);
  while (error == 0 && !hand.is_over) {
    struct act *act = asked;
    if (act == NULL) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    asked = NULL;
    pthread_mutex_unlock(&lock);
    umask(act->mask);
    act->result = carry_out(act);
    act->error = errno;
    pthread_mutex_lock(&lock);
    act->is_done = true;
    pthread_cond_broadcast(&changed);
  }
  hand.is_ready = false;
  hand.has_left = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void *make(void *of) {
  landlock_never(of);
  rights_leave();
  pthread_mutex_lock(&lock);
  is_apart = true;
  pthread_cond_broadcast(&changed);
  for (;;) {
    while (!hand.is_wanted) pthread_cond_wait(&changed, &lock);
    hand.is_wanted = false;
    pthread_t thread;
    hand.error = pthread_create(&thread, NULL, serve, NULL);
    if (hand.error == 0) pthread_detach(thread);
    else hand.has_left = true;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

void hands_start(const struct plan *plan) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, make, (void *)(uintptr_t)plan) != 0) fail("observe", "thread");
  pthread_mutex_lock(&lock);
  /* It has opened something on its way, and all that is not known is closed soon. */
  while (!is_apart) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

int hands_renew(int rules) {
  int error = 0;
  pthread_mutex_lock(&lock);
  hand.is_over = true;
  pthread_cond_broadcast(&changed);
  while (!hand.has_left) pthread_cond_wait(&changed, &lock);
  if (rules >= 0) {
    hand = (struct hand){.rules = rules, .is_wanted = true};
    pthread_cond_broadcast(&changed);
    while (!hand.is_ready && !hand.has_left) pthread_cond_wait(&changed, &lock);
    error = hand.error;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* Waits until the hand has done it; false where there is none any more. Holds the lock. */
static bool ask(struct act *own) {
  while (hand.is_ready && !hand.is_over && asked != NULL) pthread_cond_wait(&changed, &lock);
  if (!hand.is_ready || hand.is_over) return false;
  asked = own;
  pthread_cond_broadcast(&changed);
  while (!own->is_done) {
    if (asked == own && hand.has_left) {
      asked = NULL;
      return false;
    }
    pthread_cond_wait(&changed, &lock);
  }
  return true;
}

/* By this thread itself where no grant is needed: it is under the session's rules, and where there are namespaces the folder is one of the disk outside. */
static int act(bool granted, struct act *own) {
  if (!is_bare() || !granted) return carry_out(own);
  own->mask = umask(0);
  umask(own->mask);
  pthread_mutex_lock(&lock);
  const bool is_done = ask(own);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  errno = is_done ? own->error : EACCES;
  return is_done ? own->result : -1;
}

int act_open(const struct place *place, const char *name, int flags, mode_t mode) {
  return act(place->grant != 0, &(struct act){.kind = OPEN, .folder = place->folder, .name = name, .flags = flags, .mode = mode});
}

int act_mkdir(const struct place *place, mode_t mode) { return act(place->grant != 0, &(struct act){.kind = FOLDER, .folder = place->folder, .name = place->name, .mode = mode}); }

int act_mknod(const struct place *place, mode_t mode, dev_t device) {
  return act(place->grant != 0, &(struct act){.kind = NODE, .folder = place->folder, .name = place->name, .mode = mode, .device = device});
}

int act_symlink(const char *target, const struct place *place) {
  return act(place->grant != 0, &(struct act){.kind = SYMLINK, .folder = place->folder, .name = place->name, .other_name = target});
}

int act_link(int folder, const char *name, const struct place *to, int flags) {
  return act(to->grant != 0, &(struct act){.kind = LINK, .other = folder, .other_name = name, .folder = to->folder, .name = to->name, .flags = flags});
}

int act_rename(const struct place *from, const char *name, const struct place *to, const char *to_name, unsigned flags) {
  return act(from->grant != 0 || to->grant != 0, &(struct act){.kind = RENAME, .folder = from->folder, .name = name, .other = to->folder, .other_name = to_name, .flags = (int)flags});
}

int act_unlink(const struct place *place, const char *name, int flags) {
  return act(place->grant != 0, &(struct act){.kind = UNLINK, .folder = place->folder, .name = name, .flags = flags});
}

int act_reopen(int object, int flags) { return act(true, &(struct act){.kind = REOPEN, .folder = object, .flags = flags}); }

int act_truncate(int object, int64_t length) { return act(true, &(struct act){.kind = TRUNCATE, .folder = object, .length = length}); }
