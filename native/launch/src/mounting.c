#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int path_open(const char *path) {
  struct k_open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = K_RESOLVE_NO_SYMLINKS | K_RESOLVE_NO_MAGICLINKS};
  return (int)syscall(NR_OPENAT2, AT_FDCWD, path, &how, sizeof how);
}

int tree_clone(const char *path, bool recursive) {
  const int at = path_open(path);
  if (at < 0) fail("view", path);
  const unsigned flags = K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH | (recursive ? K_AT_RECURSIVE : 0);
  const int tree = (int)syscall(NR_OPEN_TREE, at, "", flags);
  if (tree < 0) fail("view", path);
  close(at);
  return tree;
}

void tree_set(int tree, const char *path, uint64_t set, uint64_t clear, bool recursive) {
  struct k_mount_attr attr = {.attr_set = set, .attr_clr = clear};
  const unsigned flags = (*path == '\0' ? K_AT_EMPTY_PATH : 0) | (recursive ? K_AT_RECURSIVE : 0);
  if (syscall(NR_MOUNT_SETATTR, tree, path, flags, &attr, sizeof attr) != 0) fail("view", *path == '\0' ? "mount_setattr" : path);
}

int tree_scratch(const char *path, uint32_t mode, uint32_t mebibytes, uint32_t inodes) {
  char text[32];
  const int fs = (int)syscall(NR_FSOPEN, "tmpfs", K_FSOPEN_CLOEXEC);
  if (fs < 0) fail("scratch", path);
  snprintf(text, sizeof text, "%um", mebibytes);
  bool ok = syscall(NR_FSCONFIG, fs, K_FSCONFIG_SET_STRING, "size", text, 0) == 0;
  snprintf(text, sizeof text, "%o", mode);
  ok = ok && syscall(NR_FSCONFIG, fs, K_FSCONFIG_SET_STRING, "mode", text, 0) == 0;
  snprintf(text, sizeof text, "%u", inodes);
  ok = ok && (inodes == 0 || syscall(NR_FSCONFIG, fs, K_FSCONFIG_SET_STRING, "nr_inodes", text, 0) == 0);
  ok = ok && syscall(NR_FSCONFIG, fs, K_FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
  const int tree = ok ? (int)syscall(NR_FSMOUNT, fs, K_FSMOUNT_CLOEXEC, K_ATTR_NOSUID | K_ATTR_NODEV) : -1;
  if (tree < 0) fail("scratch", path);
  close(fs);
  return tree;
}

static int make_last(const char *path, bool is_folder) { return is_folder ? mkdir(path, 0755) : mknod(path, S_IFREG | 0600, 0); }

/* Makes the folders of a path that do not exist, and a place of the kind that is mounted there. Where nothing may be made, the kernel says so. */
static int make_place(const char *path, bool is_folder) {
  char part[PATH_MAX];
  if (make_last(path, is_folder) == 0) return 0;
  if (errno != ENOENT) return -1;
  for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    memcpy(part, path, (size_t)(slash - path));
    part[slash - path] = '\0';
    if (mkdir(part, 0755) != 0 && errno != EEXIST) return -1;
  }
  return make_last(path, is_folder);
}

void tree_lay(int tree, int place, const char *path) {
  if (syscall(NR_MOVE_MOUNT, tree, "", place, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) != 0) fail("view", path);
}

void tree_attach(int tree, const char *path) {
  int place = path_open(path);
  if (place < 0 && errno == ENOENT) {
    struct stat s;
    if (fstat(tree, &s) != 0 || make_place(path, S_ISDIR(s.st_mode)) != 0) fail("view", path);
    place = path_open(path);
  }
  if (place < 0) fail("view", path);
  tree_lay(tree, place, path);
  close(place);
}
