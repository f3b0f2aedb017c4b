/* A file that is granted is mounted by itself, so that a program outside that puts another file in its place (as editors do) leaves the old one mounted. The
 * folders of such files are watched, and what lies there now is shown. Where this user has no instance or watch of inotify left, the file stays what it was. */
#define _GNU_SOURCE
#include "grant.h"

#include "launch.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static int events = -1;

static void *work(void *nothing) {
  (void)nothing;
  union {
    struct inotify_event head;
    char room[4096];
  } buffer;
  struct pollfd polled = {.fd = events, .events = POLLIN};
  for (;;) {
    if (poll(&polled, 1, -1) <= 0) continue;
    const ssize_t n = read(events, &buffer, sizeof buffer);
    for (ssize_t at = 0; at < n;) {
      const struct inotify_event *event = (const struct inotify_event *)(const void *)(buffer.room + at);
      /* More than the kernel keeps: anything may be another now. */
      if ((event->mask & IN_Q_OVERFLOW) != 0) grants_moved(-1, NULL);
      else if (event->len > 0) grants_moved(event->wd, event->name);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  return NULL;
}

static bool start(void) {
  pthread_t thread;
  if (events >= 0) return true;
  events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (events < 0) return false;
  if (pthread_create(&thread, NULL, work, NULL) != 0) _exit(125);
  return true;
}

void watch_add(struct grant *grant) {
  grant->watch = -1;
  /* What lies in a folder is seen in it as it is. */
  if (grant->below || !start()) return;
  const int folder = object_at(outside_root(), grant->path, (size_t)(strrchr(grant->path, '/') - grant->path));
  if (folder < 0) return;
  /* One number for all that watch the same folder. */
  grant->watch = inotify_add_watch(events, path_to(folder).text, IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE);
  close(folder);
}

void watch_remove(int watch) {
  if (watch >= 0) inotify_rm_watch(events, watch);
}
