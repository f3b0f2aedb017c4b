/* What programs of the session see of a grant: what lay at its path outside, mounted over what the view has there, or upon a name that is made for it in a
 * folder that the view covers. Mounts are gone when the grant is; what programs have open stays theirs. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Names looked at below a folder that was hidden, and covers laid there. */
#define ENTRIES_MAX 200000u
#define COVERS_MAX 4096u
#define DEPTH_MAX 100u

static int find_at(int root, const char *path, size_t length) {
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

static bool same_object(int a, int b) {
  struct stat one, two;
  return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static size_t parent_length(const struct grant *grant) {
  const size_t length = (size_t)(strrchr(grant->path, '/') - grant->path);
  return length == 0 ? 1 : length;
}

/* A new name can be made where the folder is seen as it is. */
static int find_absent(const struct grant *grant) {
  const int there = find_at(outside_root(), grant->path, parent_length(grant)), here = find_at(observe.root, grant->path, parent_length(grant));
  const bool seen = there >= 0 && here >= 0 && same_object(there, here);
  if (there >= 0) close(there);
  if (here >= 0) close(here);
  return seen ? 0 : ENOENT;
}

int grant_find(struct grant *grant) {
  struct stat s;
  grant->source = find_at(outside_root(), grant->path, grant->length);
  if (grant->source < 0) return errno == ENOENT && grant->what == GRANT_WRITE ? find_absent(grant) : errno;
  if (fstat(grant->source, &s) != 0) return errno;
  if (S_ISLNK(s.st_mode)) return ELOOP;
  if (grant->what == GRANT_SOCKET) return S_ISSOCK(s.st_mode) ? 0 : ENOTSOCK;
  if (S_ISDIR(s.st_mode)) return grant->below ? 0 : EISDIR;
  return S_ISREG(s.st_mode) ? 0 : EINVAL;
}

/* --- what stays covered below a folder ---------------------------------------------------------------------------- */

struct covers {
  struct outside_cover *all;
  size_t count, looked_at;
  char path[PATH_MAX]; /* absolute, of what is looked at */
  size_t length;
  const struct grant *grant;
};

static void covers_free(struct covers *covers) {
  for (size_t i = 0; i < covers->count; i++) free(covers->all[i].path);
  free(covers->all);
}

static int covers_add(struct covers *covers, const char *path, bool is_folder) {
  if (covers->count == COVERS_MAX) return E2BIG;
  if ((covers->count & (covers->count - 1)) == 0) {
    struct outside_cover *more = realloc(covers->all, sizeof *more * (covers->count == 0 ? 1 : 2 * covers->count));
    if (more == NULL) return ENOMEM;
    covers->all = more;
  }
  char *own = strdup(path);
  if (own == NULL) return ENOMEM;
  covers->all[covers->count++] = (struct outside_cover){.path = own, .is_folder = is_folder};
  return 0;
}

/* Whether a mask hides the name, and not the whole of what was granted with it. What git tracks is not looked for. */
static bool is_masked(const struct covers *covers) {
  static const struct names_disk no_facts;
  struct names_answer answer;
  names_judge(observe.names, &no_facts, covers->path, covers->length, &answer);
  return answer.mask != NAMES_NONE && answer.mask_parts > covers->grant->parts;
}

static int look_through(struct covers *covers, int folder, unsigned depth);

static int look_at(struct covers *covers, DIR *dir, const struct dirent *entry, unsigned depth) {
  const size_t before = covers->length, n = strlen(entry->d_name);
  if (++covers->looked_at > ENTRIES_MAX) return E2BIG;
  if (before + 1 + n >= sizeof covers->path) return 0;
  covers->path[before] = '/';
  memcpy(covers->path + before + 1, entry->d_name, n + 1);
  covers->length = before + 1 + n;
  struct stat s;
  int error = 0;
  unsigned char type = entry->d_type;
  if (type == DT_UNKNOWN && fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0) type = (unsigned char)IFTODT(s.st_mode);
  /* Sockets and pipes are granted by their own name; what is mounted below may hold devices. */
  const bool is_other = type != DT_DIR && type != DT_REG && type != DT_LNK;
  if (is_other || (type != DT_LNK && is_masked(covers))) {
    error = covers_add(covers, covers->path + covers->grant->length + 1, type == DT_DIR);
  } else if (type == DT_DIR) {
    const int below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0) error = look_through(covers, below, depth + 1);
  }
  covers->length = before;
  covers->path[before] = '\0';
  return error;
}

/* `folder` is taken over. What cannot be read is not read inside either. */
static int look_through(struct covers *covers, int folder, unsigned depth) {
  DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(folder);
  if (dir == NULL) {
    close(folder);
    return depth > DEPTH_MAX ? E2BIG : ENOMEM;
  }
  int error = 0;
  const struct dirent *entry;
  while (error == 0 && (entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) error = look_at(covers, dir, entry, depth);
  closedir(dir);
  return error;
}

/* What the view has below the path: its covers stay; what it shows as it lies there is seen without; anything else would be lost. */
static int look_at_view(struct covers *covers) {
  const struct grant *grant = covers->grant;
  const struct plan *plan = observe.plan;
  int error = 0;
  for (size_t i = 0; i < plan->mount_count && error == 0; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    if (strncmp(m->path, grant->path, grant->length) != 0 || m->path[grant->length] != '/') continue;
    if (m->view == VIEW_COVER) {
      const int there = find_at(grant->source, m->path + grant->length, strlen(m->path + grant->length));
      struct stat s;
      if (there >= 0 && fstat(there, &s) == 0) error = covers_add(covers, m->path + grant->length + 1, S_ISDIR(s.st_mode));
      if (there >= 0) close(there);
    } else if (m->view != VIEW_SHOW || strcmp(m->source, m->path) != 0) {
      error = EBUSY;
    }
  }
  return error;
}

static int take(struct grant *grant, int *tree) {
  struct covers covers = {.grant = grant, .length = grant->length};
  struct stat s;
  int error = fstat(grant->source, &s) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(s.st_mode)) {
    memcpy(covers.path, grant->path, grant->length + 1);
    const int folder = openat(grant->source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    error = folder < 0 ? errno : look_through(&covers, folder, 0);
    if (error == 0) error = look_at_view(&covers);
  }
  if (error == 0) {
    *tree = outside_take(grant->source, false, covers.all, covers.count);
    if (*tree < 0) error = -*tree;
  }
  covers_free(&covers);
  return error;
}

/* --- where it is mounted --------------------------------------------------------------------------------------------- */

static int attach(int tree, int place) {
  return syscall(NR_MOVE_MOUNT, tree, "", place, "", K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH) == 0 ? 0 : errno;
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
  int error = tree < 0 ? errno : skeleton == NULL ? ENOMEM : fstat(tree, &s) != 0 ? errno : attach(tree, cover);
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

static void unmount(int tree) {
  (void)umount2(path_to(tree).text, MNT_DETACH);
  close(tree);
}

static void skeleton_leave(struct skeleton *skeleton) {
  if (skeleton == NULL || skeleton->uses > 0) return;
  struct skeleton **at = &skeletons;
  while (*at != skeleton) at = &(*at)->next;
  *at = skeleton->next;
  unmount(skeleton->tree);
  free(skeleton);
}

/* Whether a folder is of a file system in memory that the plan has made for this session. */
static bool is_own_memory(const struct grant *grant, dev_t device) {
  const struct plan *plan = observe.plan;
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    const size_t length = strlen(m->path);
    if (m->view != VIEW_SCRATCH || length >= grant->length || memcmp(m->path, grant->path, length) != 0 || grant->path[length] != '/') continue;
    const int inside = find_at(observe.root, m->path, length), there = find_at(outside_root(), m->path, length);
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

/* A place below a folder of the session's own memory: over a cover that is laid first. `at` is taken over, `*place` is what is mounted upon. */
static int make_way(struct grant *grant, int at, bool is_folder, int *place) {
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
  if (error == 0 && (*place = find_at(at, grant->path + grant->ground_at, grant->length - grant->ground_at)) < 0) error = errno;
  if (at >= 0) close(at);
  return error;
}

static int place_for(struct grant *grant, int *place) {
  struct stat own, there;
  size_t rest = 0;
  int at, error = walk(grant->path, &at, &rest);
  if (error != 0) return error;
  if (fstat(grant->source, &own) != 0) error = errno;
  if (error == 0 && rest < grant->length) {
    grant->ground_at = rest;
    return make_way(grant, at, S_ISDIR(own.st_mode), place);
  }
  if (error == 0 && fstat(at, &there) != 0) error = errno;
  /* It is seen as it is. */
  if (error == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino) {
    close(at);
    return 0;
  }
  if (error == 0 && S_ISDIR(own.st_mode) != S_ISDIR(there.st_mode)) error = S_ISDIR(own.st_mode) ? ENOTDIR : EISDIR;
  if (error == 0) *place = at;
  else close(at);
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
  if (error == 0 && place >= 0) error = attach(tree, place);
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
  if (grant->tree >= 0) unmount(grant->tree);
  grant->tree = -1;
  if (grant->ground >= 0) unmake_place(grant);
  if (grant->skeleton != NULL) {
    grant->skeleton->uses--;
    skeleton_leave(grant->skeleton);
    grant->skeleton = NULL;
  }
  rights_lower();
}
