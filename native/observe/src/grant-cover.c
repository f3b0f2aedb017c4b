/* What stays covered below a folder that is granted: sockets and pipes, which are granted by their own names, what masks hide, and what the plan covers. */
#define _GNU_SOURCE
#include "grant.h"

#include "kernel.h"
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names looked at below a folder that was hidden, and covers laid there. */
#define ENTRIES_MAX 200000u
#define COVERS_MAX 4096u
#define DEPTH_MAX 100u

struct search {
  struct covers *covers;
  size_t looked_at;
  char path[PATH_MAX]; /* absolute, of what is looked at */
  size_t length;
  const struct grant *grant;
};

void covers_free(struct covers *covers) {
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
static bool is_masked(const struct search *search) {
  static const struct names_disk no_facts;
  struct names_answer answer;
  names_judge(observe.names, &no_facts, search->path, search->length, &answer);
  return answer.mask != NAMES_NONE && answer.mask_parts > search->grant->parts;
}

static int look_through(struct search *search, int folder, unsigned depth);

static int look_at(struct search *search, DIR *dir, const struct dirent *entry, unsigned depth) {
  const size_t before = search->length, n = strlen(entry->d_name);
  if (++search->looked_at > ENTRIES_MAX) return E2BIG;
  /* No rule reads so long a path, and from a folder above it a program reads what lies there by a shorter one. */
  if (before + 1 + n >= sizeof search->path) return ENAMETOOLONG;
  search->path[before] = '/';
  memcpy(search->path + before + 1, entry->d_name, n + 1);
  search->length = before + 1 + n;
  struct stat s;
  int error = 0;
  unsigned char type = entry->d_type;
  if (type == DT_UNKNOWN && fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0) type = (unsigned char)IFTODT(s.st_mode);
  /* Sockets and pipes are granted by their own name; what is mounted below may hold devices. */
  const bool is_other = type != DT_DIR && type != DT_REG && type != DT_LNK;
  if (is_other || (type != DT_LNK && is_masked(search))) {
    error = covers_add(search->covers, search->path + search->grant->length + 1, type == DT_DIR);
  } else if (type == DT_DIR) {
    const int below = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0) error = look_through(search, below, depth + 1);
  }
  search->length = before;
  search->path[before] = '\0';
  return error;
}

/* `folder` is taken over. What cannot be read is not read inside either. */
static int look_through(struct search *search, int folder, unsigned depth) {
  DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(folder);
  if (dir == NULL) {
    close(folder);
    return depth > DEPTH_MAX ? E2BIG : ENOMEM;
  }
  int error = 0;
  const struct dirent *entry;
  while (error == 0 && (entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) error = look_at(search, dir, entry, depth);
  closedir(dir);
  return error;
}

/* What the view has below the path: its covers stay; what it shows as it lies there is seen without; anything else would be lost. */
static int look_at_view(const struct grant *grant, struct covers *covers) {
  const struct plan *plan = observe.plan;
  int error = 0;
  for (size_t i = 0; i < plan->mount_count && error == 0; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    if (strncmp(m->path, grant->path, grant->length) != 0 || m->path[grant->length] != '/') continue;
    if (m->view == VIEW_COVER) {
      const int there = object_at(grant->source, m->path + grant->length, strlen(m->path + grant->length));
      struct stat s;
      if (there >= 0 && fstat(there, &s) == 0) error = covers_add(covers, m->path + grant->length + 1, S_ISDIR(s.st_mode));
      if (there >= 0) close(there);
    } else if (m->view != VIEW_SHOW || strcmp(m->source, m->path) != 0) {
      error = EBUSY;
    }
  }
  return error;
}

int covers_find(const struct grant *grant, struct covers *covers) {
  struct stat s;
  *covers = (struct covers){.all = NULL};
  if (fstat(grant->source, &s) != 0) return errno;
  if (!S_ISDIR(s.st_mode)) return 0;
  struct search search = {.covers = covers, .length = grant->length, .grant = grant};
  memcpy(search.path, grant->path, grant->length + 1);
  const int folder = openat(grant->source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = folder < 0 ? errno : look_through(&search, folder, 0);
  return error != 0 ? error : look_at_view(grant, covers);
}
