/* Names to mount upon, made where the view has memory of the session's own: upon a cover an empty folder is laid first. */
#define _GNU_SOURCE
#include "grant.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An empty folder laid over a cover, in which names are made to mount upon. */
struct skeleton {
  struct skeleton *next;
  dev_t device;
  int tree;
  size_t uses;
};
static struct skeleton *skeletons;

static struct skeleton *skeleton_of(dev_t device) {
  struct skeleton *s = skeletons;
  while (s != NULL && s->device != device) s = s->next;
  return s;
}

/* Lays an empty folder over a cover. */
static int skeleton_make(int cover, struct skeleton **made) {
  const int tree = memory_mount(K_ATTR_RDONLY);
  struct stat s;
  struct skeleton *skeleton = tree < 0 ? NULL : malloc(sizeof *skeleton);
  int error = tree < 0 ? errno : skeleton == NULL ? ENOMEM : fstat(tree, &s) != 0 ? errno : tree_mount(tree, cover);
  if (error != 0) {
    free(skeleton);
    if (tree >= 0) close(tree);
    return error;
  }
  *skeleton = (struct skeleton){.next = skeletons, .device = s.st_dev, .tree = tree};
  skeletons = skeleton;
  *made = skeleton;
  return 0;
}

static void skeleton_leave(struct skeleton *skeleton) {
  if (skeleton == NULL || skeleton->uses > 0) return;
  struct skeleton **at = &skeletons;
  while (*at != skeleton) at = &(*at)->next;
  *at = skeleton->next;
  tree_unmount(skeleton->tree);
  free(skeleton);
}

/* Whether a folder is of a file system in memory that the plan has made for this session. */
static bool is_own_memory(const struct grant *grant, dev_t device) {
  const struct plan *plan = observe.plan;
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    const size_t length = strlen(m->path);
    if (m->view != VIEW_SCRATCH || length >= grant->length || memcmp(m->path, grant->path, length) != 0 || grant->path[length] != '/') continue;
    const int inside = object_at(observe.root, m->path, length), there = object_at(outside_root(), m->path, length);
    struct stat own, other;
    const bool is_own = inside >= 0 && fstat(inside, &own) == 0 && own.st_dev == device && !(there >= 0 && fstat(there, &other) == 0 && other.st_dev == device);
    if (inside >= 0) close(inside);
    if (there >= 0) close(there);
    if (is_own) return true;
  }
  return false;
}

/* The same folder, where names can be made: a copy that is nowhere mounted. */
static int ground_of(int folder) {
  const int ground = (int)syscall(NR_OPEN_TREE, folder, "", K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH);
  struct k_mount_attr attr = {.attr_clr = K_ATTR_RDONLY};
  if (ground < 0 || syscall(NR_MOUNT_SETATTR, ground, "", K_AT_EMPTY_PATH, &attr, sizeof attr) == 0) return ground;
  const int error = errno;
  close(ground);
  errno = error;
  return -1;
}

/* Makes what the path lacks behind `grant->ground_at`: folders, and at its end what can be mounted upon. */
static int make_place(struct grant *grant, bool is_folder) {
  int at = fcntl(grant->ground, F_DUPFD_CLOEXEC, 3), error = at < 0 ? errno : 0;
  for (const char *part = grant->path + grant->ground_at; error == 0 && *part != '\0';) {
    char name[NAME_MAX + 1];
    const size_t n = strcspn(part + 1, "/");
    memcpy(name, part + 1, n);
    name[n] = '\0';
    part += 1 + n;
    const bool is_last = *part == '\0';
    int result = is_last && !is_folder ? openat(at, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0) : mkdirat(at, name, 0755);
    if (result > 0) result = close(result);
    if (result != 0 && (errno != EEXIST || is_last)) error = errno;
    else if (result == 0) grant->made++;
    if (error != 0 || is_last) break;
    const int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) error = errno;
    close(at);
    at = next;
  }
  if (at >= 0) close(at);
  return error;
}

/* Takes away what was made, from the end; what others stand on stays. */
static void unmake_place(struct grant *grant) {
  const char *from = grant->path + grant->ground_at + 1;
  size_t length = strlen(from);
  for (; grant->made > 0; grant->made--) {
    char relative[PATH_MAX];
    memcpy(relative, from, length);
    relative[length] = '\0';
    struct stat s;
    char *slash = strrchr(relative, '/');
    int folder = grant->ground;
    const char *name = slash == NULL ? relative : slash + 1;
    if (slash != NULL) {
      struct k_open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = K_RESOLVE_NO_SYMLINKS | K_RESOLVE_NO_MAGICLINKS};
      *slash = '\0';
      folder = (int)syscall(NR_OPENAT2, grant->ground, relative, &how, sizeof how);
    }
    /* The session's own files have something in them, or are not where they were made. */
    if (folder >= 0 && fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISDIR(s.st_mode) || (s.st_size == 0 && (s.st_mode & 07777) == 0)))
      (void)unlinkat(folder, name, S_ISDIR(s.st_mode) ? AT_REMOVEDIR : 0);
    if (folder >= 0 && folder != grant->ground) close(folder);
    length = slash == NULL ? 0 : (size_t)(slash - relative);
  }
  close(grant->ground);
  grant->ground = -1;
}

int ground_make(struct grant *grant, int at, bool is_folder, int *place) {
  struct stat s, blank;
  int error = fstat(at, &s) != 0 ? errno : 0;
  const bool is_cover = error == 0 && fstat(observe.blank, &blank) == 0 && s.st_dev == blank.st_dev;
  if (is_cover) {
    error = skeleton_make(at, &grant->skeleton);
    close(at);
    at = error == 0 ? fcntl(grant->skeleton->tree, F_DUPFD_CLOEXEC, 3) : -1;
  } else if (error == 0) {
    grant->skeleton = skeleton_of(s.st_dev);
    if (grant->skeleton == NULL && !is_own_memory(grant, s.st_dev)) error = EOPNOTSUPP;
  }
  if (grant->skeleton != NULL) grant->skeleton->uses++;
  if (error == 0 && (grant->ground = ground_of(at)) < 0) error = errno;
  if (error == 0) error = make_place(grant, is_folder);
  if (error == 0 && (*place = object_at(at, grant->path + grant->ground_at, grant->length - grant->ground_at)) < 0) error = errno;
  if (at >= 0) close(at);
  return error;
}

void ground_leave(struct grant *grant) {
  if (grant->ground >= 0) unmake_place(grant);
  if (grant->skeleton == NULL) return;
  grant->skeleton->uses--;
  skeleton_leave(grant->skeleton);
  grant->skeleton = NULL;
}

void ground_stand(struct grant *grant, dev_t device) {
  grant->skeleton = skeleton_of(device);
  if (grant->skeleton != NULL) grant->skeleton->uses++;
}
