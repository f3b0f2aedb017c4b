/* The empty file that nobody may read, laid over a name that was just made. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int mask_lay(const struct place *place) {
  struct stat s;
  if (observe.blank < 0) return EACCES;
  const int at = openat(seen_folder(place), place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (at < 0) return errno;
  int error = fstat(at, &s) != 0 ? errno : S_ISDIR(s.st_mode) || S_ISLNK(s.st_mode) ? EACCES : 0;
  if (error == 0) {
    rights_raise(RIGHT_MOUNT);
    const int tree = (int)syscall(NR_OPEN_TREE, observe.blank, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH);
    if (tree < 0 || syscall(NR_MOVE_MOUNT, tree, "", at, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) != 0) error = errno;
    rights_lower();
    if (tree >= 0) close(tree);
  }
  close(at);
  return error;
}
