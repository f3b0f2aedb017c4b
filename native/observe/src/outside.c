/* The disk as it is outside. A thread of the supervisor stays behind where the launcher came from, and makes a mount namespace of its own there with the first
 * grant: what is mounted outside is seen in it, also what will be, and nothing of the session's view. No path leads there from inside: the root is held by a
 * descriptor here. Only who is in a mount namespace may copy mounts of it (copies of copies need Linux 6.15), and so this thread makes them. */
#define _GNU_SOURCE
#include "grant.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct job {
  int source;
  bool is_writable;
  const struct outside_cover *covers;
  size_t count;
  int result;
  bool done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct job *job;
static bool is_ready;
/* Of this thread: the root, and an own file system in memory that lies over it, where copies are put together and which holds the covers. */
static int root = -1, stage = -1, blank_folder = -1, blank_file = -1;

static int enter(void) {
  if (root >= 0) return 0;
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) return errno;
  root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return root < 0 ? errno : 0;
}

int memory_mount(uint64_t attributes) {
  const int fs = (int)syscall(NR_FSOPEN, "tmpfs", K_FSOPEN_CLOEXEC);
  const bool ok = fs >= 0 && syscall(NR_FSCONFIG, fs, K_FSCONFIG_SET_STRING, "size", "1m", 0) == 0 && syscall(NR_FSCONFIG, fs, K_FSCONFIG_SET_STRING, "mode", "0755", 0) == 0 &&
                  syscall(NR_FSCONFIG, fs, K_FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
  const int tree = ok ? (int)syscall(NR_FSMOUNT, fs, K_FSMOUNT_CLOEXEC, attributes | K_ATTR_NOSUID | K_ATTR_NODEV | K_ATTR_NOEXEC) : -1;
  const int error = errno;
  if (fs >= 0) close(fs);
  errno = error;
  return tree;
}

static int file_make(const char *name) {
  const int file = openat(stage, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
  return file < 0 ? -1 : close(file);
}

static int stage_make(void) {
  if (blank_file >= 0) return 0;
  if (stage < 0) {
    stage = memory_mount(0);
    if (stage < 0) return errno;
    if (syscall(NR_MOVE_MOUNT, stage, "", root, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) != 0 || mkdirat(stage, "folder", 0500) != 0 || file_make("file") != 0 ||
        mkdirat(stage, "at-folder", 0700) != 0 || file_make("at-file") != 0)
      return errno;
  }
  blank_folder = openat(stage, "folder", O_PATH | O_NOFOLLOW | O_CLOEXEC);
  blank_file = openat(stage, "file", O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return blank_folder < 0 || blank_file < 0 ? errno : 0;
}

static int tree_copy(int of, uint64_t set) {
  const int tree = (int)syscall(NR_OPEN_TREE, of, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH | K_AT_RECURSIVE);
  if (tree < 0) return -errno;
  /* In one step with what keeps later mounts of the outside from coming into it. */
  struct k_mount_attr attr = {.attr_set = set | K_ATTR_NOSUID | K_ATTR_NODEV, .propagation = MS_PRIVATE};
  if (syscall(NR_MOUNT_SETATTR, tree, "", K_AT_EMPTY_PATH | K_AT_RECURSIVE, &attr, sizeof attr) == 0) return tree;
  const int error = errno;
  close(tree);
  return -error;
}

static int cover(int tree, const struct outside_cover *c) {
  struct k_open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = K_RESOLVE_NO_SYMLINKS | K_RESOLVE_NO_MAGICLINKS};
  const int place = (int)syscall(NR_OPENAT2, tree, c->path, &how, sizeof how);
  /* What has gone meanwhile needs no cover. */
  if (place < 0) return errno == ENOENT ? 0 : errno;
  const int blank = tree_copy(c->is_folder ? blank_folder : blank_file, K_ATTR_RDONLY | K_ATTR_NOEXEC);
  int error = blank < 0 ? -blank : 0;
  if (error == 0 && syscall(NR_MOVE_MOUNT, blank, "", place, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) != 0) error = errno;
  if (blank >= 0) close(blank);
  close(place);
  return error;
}

/* Covers are laid where the copy is mounted, and a copy of that is what they come along with. */
static int take_covered(const struct job *j, int tree) {
  struct stat s;
  int error = stage_make();
  if (error != 0 || fstat(tree, &s) != 0) return -(error != 0 ? error : errno);
  const int place = openat(stage, S_ISDIR(s.st_mode) ? "at-folder" : "at-file", O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) return -errno;
  error = syscall(NR_MOVE_MOUNT, tree, "", place, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) != 0 ? errno : 0;
  close(place);
  if (error != 0) return -error;
  for (size_t i = 0; i < j->count && error == 0; i++) error = cover(tree, &j->covers[i]);
  int whole = -error;
  if (error == 0) whole = (int)syscall(NR_OPEN_TREE, tree, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH | K_AT_RECURSIVE);
  if (error == 0 && whole < 0) whole = -errno;
  if (fchdir(observe.fds) != 0 || umount2(path_to(tree).text, MNT_DETACH) != 0) {
    error = errno;
    if (whole >= 0) close(whole);
    return -error;
  }
  return whole;
}

static int take(const struct job *j) {
  const int tree = tree_copy(j->source, j->is_writable ? 0 : K_ATTR_RDONLY);
  if (tree < 0 || j->count == 0) return tree;
  const int whole = take_covered(j, tree);
  close(tree);
  return whole;
}

static int carry_out(const struct job *j) {
  rights_raise(RIGHT_MOUNT);
  const int error = enter();
  const int result = error != 0 ? -error : j->source < 0 ? root : take(j);
  rights_lower();
  return result;
}

static void *work(void *nothing) {
  (void)nothing;
  if (unshare(CLONE_FS) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("observe", "the view outside");
  rights_settle();
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

void outside_start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) fail("observe", "thread");
  pthread_mutex_lock(&lock);
  while (!is_ready) pthread_cond_wait(&done, &lock);
  pthread_mutex_unlock(&lock);
}

static int ask(struct job *own) {
  pthread_mutex_lock(&lock);
  /* A session without a view of its own has none outside of it either. */
  if (!is_ready) {
    pthread_mutex_unlock(&lock);
    return -EOPNOTSUPP;
  }
  while (job != NULL) pthread_cond_wait(&done, &lock);
  job = own;
  pthread_cond_signal(&asked);
  while (!own->done) pthread_cond_wait(&done, &lock);
  job = NULL;
  pthread_cond_broadcast(&done);
  pthread_mutex_unlock(&lock);
  return own->result;
}

/* Without a view of its own the session sees the same disk. */
int outside_root(void) { return is_bare() ? observe.root : ask(&(struct job){.source = -1}); }

int outside_take(int source, bool is_writable, const struct outside_cover *covers, size_t count) {
  return ask(&(struct job){.source = source, .is_writable = is_writable, .covers = covers, .count = count});
}
