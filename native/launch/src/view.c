/* The mount view: everything read-only, then, in the order of the plan, what is put back, shown, covered and held fast. */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Where the file system that holds the two covers is mounted; our own /dev lies over it. */
#define BLANKS "/dev"

struct blanks {
  int folder, file; /* an empty folder and an empty file that nobody may read */
};

static struct blanks blanks_make(void) {
  const int tree = tree_scratch("covers", 0700, 1, 4);
  if (mkdirat(tree, "folder", 0500) != 0) fail("view", "covers");
  const int file = openat(tree, "file", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) fail("view", "covers");
  close(file);
  tree_attach(tree, BLANKS);
  tree_set(tree, "", K_ATTR_RDONLY | K_ATTR_NOEXEC, 0, false);
  close(tree);
  const struct blanks blanks = {.folder = path_open(BLANKS "/folder"), .file = path_open(BLANKS "/file")};
  if (blanks.folder < 0 || blanks.file < 0) fail("view", "covers");
  return blanks;
}

/* Each place gets its own clone of a cover. */
static void cover(const struct blanks *blanks, const char *path) {
  const int place = path_open(path);
  struct stat s;
  /* What has gone since the plan was made needs no cover; nor does what this user, who is the program inside, cannot reach. */
  if (place < 0 && (errno == ENOENT || errno == EACCES)) return;
  if (place < 0 || fstat(place, &s) != 0) fail("view", path);
  if (S_ISLNK(s.st_mode)) {
    errno = ELOOP;
    fail("view", path);
  }
  const int blank = S_ISDIR(s.st_mode) ? blanks->folder : blanks->file;
  const int tree = (int)syscall(NR_OPEN_TREE, blank, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH);
  if (tree < 0) fail("view", path);
  tree_lay(tree, place, path);
  close(place);
  close(tree);
}

/* Returns the tree where it has to be frozen later, else -1. */
static int place(const struct plan_mount *mount, int taken, const struct blanks *blanks) {
  if (mount->view == VIEW_COVER) {
    cover(blanks, mount->path);
    return -1;
  }
  const int tree = mount->view == VIEW_SCRATCH ? tree_scratch(mount->path, mount->mode, mount->mebibytes, 0) : taken;
  uint64_t set = K_ATTR_NOSUID | K_ATTR_NODEV;
  if (mount->view == VIEW_SHOW) set |= K_ATTR_RDONLY;
  if ((mount->attributes & ATTRIBUTE_NOEXEC) != 0) set |= K_ATTR_NOEXEC;
  tree_set(tree, "", set, 0, true);
  tree_attach(tree, mount->path);
  if ((mount->attributes & ATTRIBUTE_FROZEN) != 0) return tree;
  close(tree);
  return -1;
}

int view_build(const struct plan *plan) {
  /* A mount that is made outside later must not appear here, writable; none of ours may go out. */
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("mounts", "/");

  /* First take hold of what the view will cover. */
  struct devices devices;
  devices_take(&devices);
  int *taken = calloc(plan->mount_count + 1, sizeof *taken);
  if (taken == NULL) fail("memory", "");
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    taken[i] = m->view == VIEW_WRITABLE || m->view == VIEW_SHOW ? tree_clone(m->view == VIEW_SHOW ? m->source : m->path, true) : -1;
  }

  /* The kernel gives a new /proc only where the old one is seen whole: before anything covers it. */
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) fail("proc", "/proc");
  tree_set(AT_FDCWD, "/", K_ATTR_RDONLY | K_ATTR_NOSUID | K_ATTR_NODEV, 0, true);
  if ((plan->flags & PLAN_PROC_WRITE) != 0) tree_set(AT_FDCWD, "/proc", 0, K_ATTR_RDONLY, false);

  const struct blanks blanks = blanks_make();
  devices_place(&devices);
  for (size_t i = 0; i < plan->mount_count; i++) taken[i] = place(&plan->mounts[i], taken[i], &blanks);
  for (size_t i = 0; i < plan->mount_count; i++) {
    if (taken[i] < 0) continue;
    tree_set(taken[i], "", K_ATTR_RDONLY, 0, false);
    close(taken[i]);
  }
  close(blanks.folder);
  free(taken);
  return blanks.file;
}
