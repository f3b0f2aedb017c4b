/* What programs of the session see of a grant: what lay at its path outside, mounted over what the view has there, or upon a name that is made for it in a
 * folder that the view covers. Mounts are gone when the grant is; what programs have open stays theirs. */
#define _GNU_SOURCE
#include "grant.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int object_at(int root, const char *path, size_t length) {
  char relative[PATH_MAX + 1];
  if (length >= sizeof relative) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(relative, length <= 1 ? "." : path + 1, length <= 1 ? 1 : length - 1);
  relative[length <= 1 ? 1 : length - 1] = '\0';
  struct k_open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = K_RESOLVE_NO_SYMLINKS | K_RESOLVE_NO_MAGICLINKS};
  return (int)syscall(NR_OPENAT2, root, relative, &how, sizeof how);
}

bool same_object(int a, int b) {
  struct stat one, two;
  return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static size_t parent_length(const struct grant *grant) {
  const size_t length = (size_t)(strrchr(grant->path, '/') - grant->path);
  return length == 0 ? 1 : length;
}

/* A new name can be made where the folder is seen as it is. */
static int find_absent(const struct grant *grant) {
  const int there = object_at(outside_root(), grant->path, parent_length(grant)), here = object_at(observe.root, grant->path, parent_length(grant));
  const bool seen = there >= 0 && here >= 0 && same_object(there, here);
  if (there >= 0) close(there);
  if (here >= 0) close(here);
  return seen ? 0 : ENOENT;
}

int grant_find(struct grant *grant) {
  struct stat s;
  grant->source = object_at(outside_root(), grant->path, grant->length);
  if (grant->source < 0) return errno == ENOENT && grant->what == GRANT_WRITE ? find_absent(grant) : errno;
  if (fstat(grant->source, &s) != 0) return errno;
  if (S_ISLNK(s.st_mode)) return ELOOP;
  if (grant->what == GRANT_SOCKET) return S_ISSOCK(s.st_mode) ? 0 : ENOTSOCK;
  if (S_ISDIR(s.st_mode)) return grant->below ? 0 : EISDIR;
  return S_ISREG(s.st_mode) ? 0 : EINVAL;
}

static int take(const struct grant *grant, int *tree) {
  struct covers covers;
  int error = covers_find(grant, &covers);
  if (error == 0) {
    *tree = outside_take(grant->source, false, covers.all, covers.count);
    if (*tree < 0) error = -*tree;
  }
  covers_free(&covers);
  return error;
}

/* --- where it is mounted --------------------------------------------------------------------------------------------- */

int tree_mount(int tree, int place) {
  return syscall(NR_MOVE_MOUNT, tree, "", place, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) == 0 ? 0 : errno;
}

void tree_unmount(int tree) {
  (void)umount2(path_to(tree).text, MNT_DETACH);
  close(tree);
}

/* As far as the view has the path: the deepest of it, and where the path goes on from there. */
static int walk(const char *path, int *at, size_t *rest) {
  *at = fcntl(observe.root, F_DUPFD_CLOEXEC, 3);
  for (const char *part = path; *at >= 0 && *part != '\0';) {
    char name[NAME_MAX + 1];
    const size_t n = strcspn(part + 1, "/");
    memcpy(name, part + 1, n);
    name[n] = '\0';
    const int next = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat s;
    if (next < 0 && errno == ENOENT) {
      *rest = (size_t)(part - path);
      return 0;
    }
    const int error = next < 0 ? errno : fstat(next, &s) != 0 ? errno : S_ISLNK(s.st_mode) ? ELOOP : 0;
    close(*at);
    *at = next;
    if (error != 0) {
      if (next >= 0) close(next);
      return error;
    }
    part += 1 + n;
  }
  if (*at < 0) return errno;
  *rest = strlen(path);
  return 0;
}

/* The empty file by which masks hide. */
static bool is_blank(const struct stat *s) {
  struct stat blank;
  return observe.blank >= 0 && fstat(observe.blank, &blank) == 0 && s->st_dev == blank.st_dev && s->st_ino == blank.st_ino;
}

/* Another file has taken the name of a masked one, and came without the mask. */
static int mask_again(int at) {
  const int tree = (int)syscall(NR_OPEN_TREE, observe.blank, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH);
  const int error = tree < 0 ? errno : tree_mount(tree, at);
  if (tree >= 0) close(tree);
  return error;
}

/* Where what was granted is to be mounted; -1 where the session sees it as it is. 0 or an errno. */
static int place_for(struct grant *grant, int *place) {
  struct stat own, there;
  size_t rest = 0;
  int at, error = walk(grant->path, &at, &rest);
  if (error != 0) return error;
  if (fstat(grant->source, &own) != 0) error = errno;
  if (error == 0 && rest < grant->length) {
    grant->ground_at = rest;
    return ground_make(grant, at, S_ISDIR(own.st_mode), place);
  }
  if (error == 0 && fstat(at, &there) != 0) error = errno;
  const bool is_seen = error == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
  if (is_seen && grant->is_masked) error = mask_again(at);
  if (error == 0 && is_seen) {
    /* Upon the mask, where one was laid. */
    close(at);
    return grant->is_masked ? (*place = object_at(observe.root, grant->path, grant->length)) < 0 ? errno : 0 : 0;
  }
  if (error == 0 && S_ISDIR(own.st_mode) != S_ISDIR(there.st_mode)) error = S_ISDIR(own.st_mode) ? ENOTDIR : EISDIR;
  if (error == 0) {
    grant->is_masked = is_blank(&there);
    ground_stand(grant, there.st_dev);
    *place = at;
  } else {
    close(at);
  }
  return error;
}

int grant_show(struct grant *grant) {
  grant->tree = grant->ground = -1;
  grant->skeleton = NULL;
  grant->made = 0;
  if (grant->source < 0) return 0;
  int place = -1, tree = -1;
  rights_raise(RIGHT_MOUNT);
  int error = place_for(grant, &place);
  rights_lower();
  if (error == 0 && place >= 0) error = take(grant, &tree);
  rights_raise(RIGHT_MOUNT);
  if (error == 0 && place >= 0) error = tree_mount(tree, place);
  rights_lower();
  if (place >= 0) close(place);
  if (error == 0) {
    grant->tree = tree;
    return 0;
  }
  if (tree >= 0) close(tree);
  grant_hide(grant);
  return error;
}

void grant_hide(struct grant *grant) {
  rights_raise(RIGHT_MOUNT);
  if (grant->tree >= 0) tree_unmount(grant->tree);
  grant->tree = -1;
  ground_leave(grant);
  rights_lower();
}
