/* Pointers of git, which git writes in place: what the program writes goes into a file without a name, and when it has closed it, the front judges the content.
 * Only then a file with that content takes the name, one that nobody has open. A session that ends before leaves nothing. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is written at a time; a program that opens more of them waits for nobody and gets EMFILE. */
#define POINTERS_MAX 64u
/* As much as libs/policy reads, and more than git writes. */
#define CONTENT_MAX 8192u

struct pointer {
  struct pointer *next;
  int watch;
  int file;
  bool is_closed;
  mode_t mode;
  struct call call; /* for who it was */
  struct rule rule;
  struct place place; /* its folder is its own */
  char name[NAME_MAX + 1];
};

/* `lock` guards the list and `working`; `settled` tells that there is one less. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;
static struct pointer *all;
static uint32_t working;
static atomic_uint count;
static int events = -1;

static void *wait_for_events(void *nothing) {
  (void)nothing;
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) _exit(125);
  struct pollfd polled = {.fd = events, .events = POLLIN};
  for (;;)
    if (poll(&polled, 1, -1) > 0) pointers_settle();
}

void pointers_start(void) {
  pthread_t thread;
  events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  /* This user may have used up what there is of it: then pointers are not written, and all else goes on. */
  if (events < 0) return;
  if (pthread_create(&thread, NULL, wait_for_events, NULL) != 0) fail("observe", "thread");
}

static void pointer_free(struct pointer *pointer) {
  if (pointer->file >= 0) close(pointer->file);
  place_close(&pointer->place);
  free(pointer);
  atomic_fetch_sub(&count, 1);
}

/* --- judging ---------------------------------------------------------------------------------------------------- */

static void judge(struct pointer *pointer) {
  unsigned char bytes[CONTENT_MAX + 1];
  const ssize_t length = pread(pointer->file, bytes, sizeof bytes, 0);
  const int error = length < 0 || (size_t)length > CONTENT_MAX ? EACCES
                                                               : mediate_bytes(&pointer->call, &pointer->place, &pointer->rule, CALL_OPEN, bytes, (size_t)length, pointer->mode);
  /* What the front refused it has told itself. */
  if (length < 0 || (size_t)length > CONTENT_MAX) channel_event(&pointer->call, EVENT_REFUSED, CALL_OPEN, error, pointer->rule.index, pointer->place.path);
}

/* Marks those that have been closed since. Holds `lock`. */
static void take_events(void) {
  union {
    struct inotify_event head;
    char room[4096];
  } buffer;
  ssize_t n;
  while ((n = read(events, &buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < n;) {
      const struct inotify_event *event = (const struct inotify_event *)(const void *)(buffer.room + at);
      for (struct pointer *p = all; p != NULL; p = p->next)
        if (p->watch == event->wd && (event->mask & IN_CLOSE_WRITE) != 0) p->is_closed = true;
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
}

/* Takes one that is closed out of the list. Holds `lock`. */
static struct pointer *next_closed(void) {
  for (struct pointer **at = &all; *at != NULL; at = &(*at)->next) {
    struct pointer *found = *at;
    if (!found->is_closed) continue;
    *at = found->next;
    return found;
  }
  return NULL;
}

void pointers_settle(void) {
  if (atomic_load(&count) == 0) return;
  pthread_mutex_lock(&lock);
  take_events();
  for (struct pointer *pointer; (pointer = next_closed()) != NULL; take_events()) {
    working++;
    pthread_mutex_unlock(&lock);
    judge(pointer);
    pointer_free(pointer);
    pthread_mutex_lock(&lock);
    working--;
    pthread_cond_broadcast(&settled);
  }
  while (working > 0) pthread_cond_wait(&settled, &lock);
  pthread_mutex_unlock(&lock);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* What stands there, as far as the program would be let in: 0 or an errno. */
static int look_at(const struct place *place, int flags, struct stat *stat, bool *is_there) {
  *is_there = fstatat(place->folder, place->name, stat, AT_SYMLINK_NOFOLLOW) == 0;
  if (!*is_there) return errno != ENOENT ? errno : (flags & O_CREAT) == 0 ? ENOENT : 0;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return EEXIST;
  if (S_ISDIR(stat->st_mode)) return EISDIR;
  return S_ISREG(stat->st_mode) && faccessat(place->folder, place->name, W_OK, AT_EACCESS) == 0 ? 0 : EACCES;
}

/* The content that the program finds. */
static int fill(int file, const struct place *place) {
  char bytes[CONTENT_MAX];
  const int old = act_open(place, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (old < 0) return errno;
  const ssize_t n = pread(old, bytes, sizeof bytes, 0);
  close(old);
  return n < 0 || pwrite(file, bytes, (size_t)n, 0) != n ? EACCES : 0;
}

static int own_folder(const struct place *place, int *folder) {
  *folder = openat(place->folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return *folder < 0 ? errno : 0;
}

/* The pointer with a file that is not watched yet; 0 or an errno. */
static int prepare(struct pointer *pointer, const struct place *place, int flags, mode_t mode) {
  struct stat stat;
  bool is_there;
  int error = look_at(place, flags, &stat, &is_there);
  if (error != 0) return error;
  pointer->place = *place;
  pointer->place.folder = pointer->place.seen = -1;
  memcpy(pointer->name, place->name, place->name_length);
  pointer->place.name = pointer->name;
  if ((error = own_folder(place, &pointer->place.folder)) != 0) return error;
  pointer->mode = is_there ? stat.st_mode & 07777 : mode;
  pointer->file = memfd_create("nd7", MFD_CLOEXEC);
  if (pointer->file < 0) return errno;
  return is_there && (flags & O_TRUNC) == 0 ? fill(pointer->file, place) : 0;
}

int pointer_open(struct call *call, const struct place *place, const struct rule *rule, int flags, mode_t mode) {
  if (events < 0) {
    channel_event(call, EVENT_REFUSED, CALL_OPEN, EACCES, rule->index, place->path);
    return EACCES;
  }
  struct pointer *pointer = atomic_fetch_add(&count, 1) < POINTERS_MAX ? calloc(1, sizeof *pointer) : NULL;
  if (pointer == NULL) {
    atomic_fetch_sub(&count, 1);
    return EMFILE;
  }
  pointer->file = pointer->place.folder = pointer->place.seen = -1;
  pointer->call = *call;
  pointer->rule = *rule;
  int error = prepare(pointer, place, flags, mode);
  const int fd = error != 0 ? -1 : open(path_to(pointer->file).text, (flags & (O_ACCMODE | O_APPEND)) | O_CLOEXEC);
  if (error == 0 && fd < 0) error = errno;
  pthread_mutex_lock(&lock);
  if (error == 0 && (pointer->watch = inotify_add_watch(events, path_to(pointer->file).text, IN_CLOSE_WRITE | IN_ONESHOT)) < 0) error = errno;
  if (error == 0) {
    pointer->next = all;
    all = pointer;
  }
  pthread_mutex_unlock(&lock);
  if (error != 0) {
    if (fd >= 0) close(fd);
    pointer_free(pointer);
    return error;
  }
  call_give(call, fd, (flags & O_CLOEXEC) != 0);
  return 0;
}
