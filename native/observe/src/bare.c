/* A session without namespaces: what mounts do elsewhere is done here by path, under the names' lock, where Landlock has no word for it. What the threads open
 * and change is bound by the session's own Landlock rules besides; the program itself has less. docs/adr/0028. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool is_bare(void) { return observe.first != 0; }

/* --- what is hidden or kept in writable folders ---------------------------------------------------------------------- */

static bool is_within(const char *path, size_t length, const char *root) {
  const size_t n = strlen(root);
  return length >= n && memcmp(path, root, n) == 0 && (length == n || path[n] == '/');
}

/* A folder or file that is shown at its own place may only be read. */
static bool is_kept(const struct plan_mount *m) { return m->view == VIEW_SHOW && strcmp(m->path, m->source) == 0; }

/* In a writable folder: elsewhere Landlock hides by itself. */
static bool is_cover(const struct plan_mount *m) { return m->view == VIEW_COVER && (m->attributes & ATTRIBUTE_CLOSED) == 0; }

static size_t longest(const char *path, size_t length, bool hidden_only) {
  const struct plan *plan = observe.plan;
  size_t found = 0;
  for (size_t i = 0; is_bare() && i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    const size_t n = strlen(m->path);
    if ((is_cover(m) || (!hidden_only && is_kept(m))) && n > found && is_within(path, length, m->path)) found = n;
  }
  return found;
}

size_t bare_guard(const char *path, size_t length) {
  const size_t n = longest(path, length, false);
  return n >= writable_root(path, length) ? n : 0;
}

size_t bare_hides(const char *path, size_t length) {
  const size_t n = longest(path, length, true);
  /* What is shown in what is hidden is not hidden. */
  return n >= writable_root(path, length) && longest(path, length, false) == n ? n : 0;
}

bool bare_is_above(const char *path, size_t length) {
  const struct plan *plan = observe.plan;
  for (size_t i = 0; is_bare() && i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    if ((is_cover(m) || is_kept(m)) && strlen(m->path) > length && memcmp(m->path, path, length) == 0 && m->path[length] == '/') return true;
  }
  return false;
}

/* --- folders that are held fast, and one that is another ----------------------------------------------------------- */

struct inode {
  dev_t device;
  ino_t number;
};
static struct inode *held;
static size_t held_count;
static int shared = -1, own = -1;
/* A file that is opened to read in the place of another. */
static struct inode replaced;
static int replacement = -1;

static bool is_inode(const struct inode *inode, const struct stat *s) { return inode->device == s->st_dev && inode->number == s->st_ino; }

/* As mount points are elsewhere: they follow what they lie on, whatever it is called. */
bool bare_is_held(const struct stat *s) {
  for (size_t i = 0; i < held_count; i++)
    if (is_inode(&held[i], s)) return true;
  return false;
}

static void take_view(const struct plan *plan) {
  held = calloc(plan->mount_count + 1, sizeof *held);
  if (held == NULL) fail("memory", "");
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    struct stat s;
    if (m->view != VIEW_WRITABLE && m->view != VIEW_SHOW) continue;
    const int at = path_open(m->view == VIEW_SHOW ? m->source : m->path);
    if (at < 0 || fstat(at, &s) != 0) {
      if (at < 0 && errno == ENOENT) continue;
      fail("view", m->path);
    }
    if (S_ISSOCK(s.st_mode)) {
      sockets_grant(&s, m->view == VIEW_SHOW);
      if (m->view == VIEW_SHOW) sockets_door(m->path);
    } else if (m->view == VIEW_WRITABLE || is_kept(m)) {
      held[held_count++] = (struct inode){s.st_dev, s.st_ino};
    } else if (S_ISREG(s.st_mode)) {
      struct stat there;
      const int place = path_open(m->path);
      if (place < 0 || fstat(place, &there) != 0) fail("view", m->path);
      replaced = (struct inode){there.st_dev, there.st_ino};
      replacement = at;
      close(place);
      continue;
    } else {
      own = at;
      shared = path_open(m->path);
      continue;
    }
    close(at);
  }
}

int bare_folder(int folder) {
  struct stat here, there;
  if (!is_bare() || shared < 0 || fstat(folder, &here) != 0 || fstat(shared, &there) != 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev) return folder;
  const int other = fcntl(own, F_DUPFD_CLOEXEC, 3);
  if (other < 0) return folder;
  close(folder);
  return other;
}

int bare_file(int object) {
  struct stat s;
  if (replacement < 0 || fstat(object, &s) != 0 || !is_inode(&replaced, &s)) return object;
  const int other = fcntl(replacement, F_DUPFD_CLOEXEC, 3);
  if (other < 0) return object;
  close(object);
  return other;
}

/* --- terminals and /proc ------------------------------------------------------------------------------------------- */

/* The host's pseudo-terminals are one folder: those that the session has made, and its own. */
#define TERMINALS_MAX 4096u
/* When each came to be, in nanoseconds: a number that is another terminal's by now has another time, which nothing inside can change. */
static atomic_llong made[TERMINALS_MAX];
static dev_t terminal;

static long long time_of(const struct stat *s) { return (long long)s->st_ctim.tv_sec * 1000000000 + s->st_ctim.tv_nsec; }

void bare_opened(int fd) {
  unsigned number;
  char path[32];
  struct stat s;
  if (!is_bare() || ioctl(fd, TIOCGPTN, &number) != 0 || number >= TERMINALS_MAX) return;
  snprintf(path, sizeof path, "dev/pts/%u", number);
  if (fstatat(observe.root, path, &s, AT_SYMLINK_NOFOLLOW) == 0) atomic_store(&made[number], time_of(&s));
}

static void find_terminal(void) {
  struct stat s;
  for (int fd = 0; fd < 3; fd++)
    if (isatty(fd) && fstat(fd, &s) == 0) terminal = s.st_rdev;
}

int bare_may_open(int object) {
  char path[PATH_MAX];
  size_t length;
  struct stat s;
  int number = 0;
  if (!is_bare()) return 0;
  if (fstat(object, &s) != 0 || path_of(object, path, sizeof path, &length) != 0) return EACCES;
  if (S_ISCHR(s.st_mode) && sscanf(path, "/dev/pts/%d", &number) == 1) {
    if (s.st_rdev == terminal) return 0;
    return number >= 0 && (unsigned)number < TERMINALS_MAX && atomic_load(&made[number]) == time_of(&s) ? 0 : EACCES;
  }
  /* Some files there may be written by whoever has the same user, and this process may read its own. */
  if (sscanf(path, "/proc/%d/", &number) == 1 && is_on_proc(object)) return number != observe.first && is_descendant(observe.proc, number, observe.first) ? 0 : EACCES;
  return bare_hides(path, length) > 0 ? EACCES : 0;
}

/* --- the process --------------------------------------------------------------------------------------------------- */

void bare_begin(void) {
  find_terminal();
}

void bare_settle(void) { take_view(observe.plan); }

bool bare_dispatch(struct call *call) {
  switch (call->number) {
    case SYS_unlinkat: do_remove(call, (int)(uint32_t)call->args[0], call->args[1], (int)(uint32_t)call->args[2]); return true;
#ifdef SYS_unlink
    case SYS_unlink: do_remove(call, AT_FDCWD, call->args[0], 0); return true;
    case SYS_rmdir: do_remove(call, AT_FDCWD, call->args[0], AT_REMOVEDIR); return true;
#endif
    default: return metadata_dispatch(call) || target_dispatch(call) || socket_dispatch(call);
  }
}
