/* From a caller's path to a folder and a name in it. This thread's root and mounts are the session's; its working folder and its pid are not the caller's,
 * and so links of /proc that mean "who asks" are followed by hand. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* As the kernel: so many links in one path. */
#define LINKS_MAX 40
#define PROC_ROOT_INODE 1

struct fd_path path_to(int fd) {
  struct fd_path path;
  snprintf(path.text, sizeof path.text, "%d", fd);
  return path;
}

int path_of(int fd, char *to, size_t size, size_t *length) {
  const ssize_t n = readlinkat(observe.fds, path_to(fd).text, to, size - 1);
  if (n < 0) return errno;
  if ((size_t)n == size - 1) return ENAMETOOLONG;
  to[n] = '\0';
  *length = (size_t)n;
  return 0;
}

static int keep_fd(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

/* Where a path of the caller begins: the root that is everybody's, or a folder to be left by leave(). */
static int start_of(const struct call *call, int dirfd, const char *path, int *fd) {
  if (path[0] != '/') return caller_folder(call, dirfd, fd);
  *fd = observe.root;
  return 0;
}

static void leave(int fd) {
  if (fd != observe.root) close(fd);
}

/* What a link of /proc says to this caller: its text, or that it leads somewhere without one. */
static int proc_link(const struct call *call, int folder, const char *name, char *text, bool *magic) {
  struct stat s;
  *magic = false;
  if (fstat(folder, &s) != 0) return errno;
  if (s.st_ino != PROC_ROOT_INODE) {
    *magic = true;
    return 0;
  }
  pid_t process, thread;
  const bool is_thread = strcmp(name, "thread-self") == 0;
  if (is_thread || strcmp(name, "self") == 0) {
    const int error = caller_numbers(call, &process, &thread);
    if (error != 0) return error;
    if (is_thread) snprintf(text, PATH_MAX, "%d/task/%d", process, thread);
    else snprintf(text, PATH_MAX, "%d", process);
    return 0;
  }
  const ssize_t n = readlinkat(folder, name, text, PATH_MAX - 1);
  if (n < 0) return errno;
  text[n] = '\0';
  return 0;
}

bool is_on_proc(int fd) {
  struct statfs fs;
  return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int read_link(const struct call *call, int folder, int link, const char *name, char *text, bool *magic) {
  *magic = false;
  if (is_on_proc(link)) return proc_link(call, folder, name, text, magic);
  const ssize_t n = readlinkat(link, "", text, PATH_MAX - 1);
  if (n < 0) return errno;
  text[n] = '\0';
  return n == 0 ? ENOENT : 0;
}

int object_walk(const struct call *call, int from, const char *path, bool follow, int *fd, bool *magic) {
  /* What a link says comes before what is left of the path; the kernel has no measure for both together. */
  char rest[4 * PATH_MAX], text[PATH_MAX], name[NAME_MAX + 1];
  int at = keep_fd(from), links = 0, error = 0;
  if (at < 0) return errno;
  *magic = false;
  if (strlen(path) >= sizeof rest) error = ENAMETOOLONG;
  else strcpy(rest, path);
  const char *next = rest;
  while (error == 0 && *next != '\0') {
    if (*next == '/' && next == rest) {
      /* An absolute path, or what a link said: from the root. */
      close(at);
      at = keep_fd(observe.root);
    }
    while (*next == '/') next++;
    const size_t n = strcspn(next, "/");
    if (n == 0) break;
    if (n > NAME_MAX) {
      error = ENAMETOOLONG;
      break;
    }
    memcpy(name, next, n);
    name[n] = '\0';
    const char *after = next + n;
    const bool is_last = after[strspn(after, "/")] == '\0';
    const int step = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat s;
    if (step < 0 || fstat(step, &s) != 0) {
      error = errno;
      if (step >= 0) close(step);
      break;
    }
    if (!S_ISLNK(s.st_mode) || (is_last && !follow && *after == '\0')) {
      close(at);
      at = step;
      *magic = false;
      next = after;
      if (!S_ISDIR(s.st_mode) && *after != '\0') error = ENOTDIR;
      continue;
    }
    bool jumps;
    error = ++links > LINKS_MAX ? ELOOP : read_link(call, at, step, name, text, &jumps);
    close(step);
    if (error != 0) break;
    if (jumps) {
      /* What this process has open, and those that hold the session with it, is none of the caller's. */
      error = bare_may_open(at);
      const int target = error == 0 ? openat(at, name, O_PATH | O_CLOEXEC) : -1;
      if (target < 0) {
        if (error == 0) error = errno;
        break;
      }
      close(at);
      at = target;
      *magic = true;
      next = after;
      continue;
    }
    const size_t length = strlen(text), tail = strlen(after);
    if (length + tail >= sizeof rest) {
      error = ENAMETOOLONG;
      break;
    }
    memmove(rest + length, after, tail + 1);
    memcpy(rest, text, length);
    next = rest;
  }
  if (error != 0) {
    close(at);
    return error;
  }
  *fd = at;
  return 0;
}

/* The kernel's own walk, and where that fails because of who asks, the one by hand, which answers with the caller's errors. */
static int walk(const struct call *call, int from, const char *path, uint64_t flags, int *fd, bool *magic) {
  const bool follow = (flags & O_NOFOLLOW) == 0;
  *magic = false;
  struct k_open_how how = {.flags = flags | O_PATH | O_CLOEXEC, .resolve = K_RESOLVE_NO_MAGICLINKS};
  *fd = (int)syscall(NR_OPENAT2, from, path, &how, sizeof how);
  if (*fd >= 0 && !(is_bare() && is_on_proc(*fd))) return 0;
  /* Where this thread has a /proc in common with the caller, links that mean "who asks" led it to itself. */
  if (*fd >= 0) close(*fd);
  else if (errno != ELOOP && errno != ENOENT) return errno;
  const int error = object_walk(call, from, path, follow, fd, magic);
  struct stat s;
  if (error == 0 && (flags & O_DIRECTORY) != 0 && (fstat(*fd, &s) != 0 || !S_ISDIR(s.st_mode))) {
    close(*fd);
    return ENOTDIR;
  }
  return error;
}

int object_find(const struct call *call, int dirfd, const char *path, bool wants_folder, bool follow, int *fd, bool *magic) {
  int from;
  const int error = start_of(call, dirfd, path, &from);
  if (error != 0) return error;
  const int result = walk(call, from, path, (wants_folder ? O_DIRECTORY : 0) | (follow ? 0 : O_NOFOLLOW), fd, magic);
  leave(from);
  return result;
}

/* `from` is taken over. `place->text` has the path. */
static int find_from(const struct call *call, int from, struct place *place) {
  size_t length;
  path_split_last(place->text, &place->name, &place->name_length);
  const size_t before = (size_t)(place->name - place->text);
  if (place->name_length == 0) {
    /* The root itself. */
    strcpy(place->text, "/.");
    place->name = place->text + 1;
    place->name_length = 1;
  }
  place->has_slash = place->name[place->name_length] == '/';
  place->is_plain = !(place->name[0] == '.' && (place->name_length == 1 || (place->name_length == 2 && place->name[1] == '.')));
  /* A path of slashes and one name begins where it begins. */
  if (strspn(place->text, "/") >= before) {
    place->folder = from == observe.root ? keep_fd(from) : from;
    if (place->folder < 0) return errno;
  } else {
    char parent[PATH_MAX + 1];
    memcpy(parent, place->text, before);
    /* As the kernel: a folder that may not be searched is not gone through. */
    strcpy(parent + before, ".");
    bool magic;
    const int error = walk(call, from, parent, O_DIRECTORY, &place->folder, &magic);
    leave(from);
    if (error != 0) {
      place->folder = -1;
      return error;
    }
  }
  place->folder = bare_folder(place->folder);
  const int error = path_of(place->folder, place->path, PATH_MAX, &length);
  if (error != 0) {
    place_close(place);
    return error;
  }
  if (length > 1) place->path[length++] = '/';
  memcpy(place->path + length, place->name, place->name_length);
  place->path_length = length + place->name_length;
  place->path[place->path_length] = '\0';
  grant_apply(place, -1);
  return 0;
}

int place_find(const struct call *call, int dirfd, const char *path, struct place *place) {
  int from;
  place->folder = place->seen = -1;
  strcpy(place->text, path);
  const int error = start_of(call, dirfd, path, &from);
  return error != 0 ? error : find_from(call, from, place);
}

int seen_folder(const struct place *place) { return place->seen >= 0 ? place->seen : place->folder; }

int place_follow(const struct call *call, const char *target, struct place *place) {
  /* Never from the disk outside: what lies beside what was granted is not. */
  const int folder = fcntl(seen_folder(place), F_DUPFD_CLOEXEC, 3);
  place_close(place);
  if (folder < 0) return errno;
  if (target[0] != '/') {
    strcpy(place->text, target);
    return find_from(call, folder, place);
  }
  close(folder);
  return place_find(call, AT_FDCWD, target, place);
}

int place_of(int object, struct place *place) {
  place->folder = place->seen = -1;
  const int error = path_of(object, place->path, PATH_MAX, &place->path_length);
  if (error != 0) return error;
  path_split_last(place->path, &place->name, &place->name_length);
  place->is_plain = true;
  place->has_slash = false;
  grant_apply(place, object);
  return 0;
}

void place_close(struct place *place) {
  if (place->folder >= 0) close(place->folder);
  if (place->seen >= 0) close(place->seen);
  place->folder = place->seen = -1;
}
