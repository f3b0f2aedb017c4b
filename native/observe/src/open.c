/* Opening for writing, and making a file by it. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40
#define TMPFILE (O_TMPFILE & ~O_DIRECTORY)

static mode_t current_umask(void) {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

static void give(struct call *call, int fd, int flags) { call_give(call, fd, (flags & O_CLOEXEC) != 0); }

/* It was opened without waiting, so that nothing here ever waits; the program did not ask for that. */
static void give_waiting(struct call *call, int fd, int flags) {
  if ((flags & O_NONBLOCK) == 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  give(call, fd, flags);
}

/* In the session's own /proc; a stream may come from the one outside. */
static bool is_session_proc(int object) {
  struct stat own, s;
  return is_on_proc(object) && fstatat(observe.root, "proc", &own, 0) == 0 && fstat(object, &s) == 0 && s.st_dev == own.st_dev;
}

/* What a descriptor stands for has a name too, also where a link of /proc leads to it as if it had none. Whether that is protected; then it is told. Where a
 * grant lets the session write it, `*object` becomes the same file on the disk outside, `*grant` its id. */
static bool is_guarded(const struct call *call, int *object, enum rule_call what, uint32_t *grant) {
  struct place *place = malloc(sizeof *place);
  *grant = 0;
  if (place == NULL || place_of(*object, place) != 0) {
    free(place);
    return true;
  }
  bool guarded = false;
  /* Pipes and the like have no path. */
  if (place->path[0] == '/' && may_change(place)) {
    const struct rule rule = rule_of(place, IS_FILE);
    guarded = rule.outcome == RULE_REFUSE || rule.outcome == RULE_MEDIATE;
    if (guarded) channel_event(call, EVENT_REFUSED, what, EACCES, rule.index, place->path);
  }
  if (!guarded && place->grant != 0 && grant_object(place, object)) *grant = place->grant;
  if (*grant != 0) channel_event(call, EVENT_RECORDED, what, 0, RULE_IS_GRANT | *grant, place->path);
  place_close(place);
  free(place);
  return guarded;
}

/* What a descriptor O_PATH stands for, opened as the program could. `object` is taken over. */
static void open_object(struct call *call, int object, int flags) {
  struct stat s;
  const int wanted = flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW);
  if (fstat(object, &s) != 0) {
    close(object);
    return call_fail(call, errno);
  }
  if (S_ISDIR(s.st_mode) && (flags & (O_CREAT | O_ACCMODE | O_TRUNC)) != 0) {
    close(object);
    return call_fail(call, EISDIR);
  }
  if ((flags & O_EXCL) != 0 && (flags & O_CREAT) != 0) {
    close(object);
    return call_fail(call, EEXIST);
  }
  uint32_t grant = 0;
  if (((wanted & O_ACCMODE) != O_RDONLY || (wanted & O_TRUNC) != 0) && is_guarded(call, &object, CALL_OPEN, &grant)) {
    close(object);
    return call_fail(call, EACCES);
  }
  const int closed = grant != 0 ? 0 : bare_may_open(object);
  if (closed != 0) {
    close(object);
    return call_fail(call, closed);
  }
  int fd;
  if (grant != 0) {
    fd = act_reopen(object, wanted | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fd = -errno;
  } else if (is_session_proc(object)) {
    /* What lies there asks who opens it: the floor's thread would be a stranger to the program, this one is what it is. */
    fd = openat(observe.fds, path_to(object).text, wanted | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fd = -errno;
  } else {
    fd = floor_open(object, NULL, wanted, 0, 0);
  }
  if (fd == -ENXIO && S_ISFIFO(s.st_mode) && (flags & O_NONBLOCK) == 0) return floor_wait(call, object, wanted);
  close(object);
  if (fd < 0) return call_fail(call, -fd);
  bare_opened(fd);
  give_waiting(call, fd, flags);
}

int own_terminal(const struct call *call, int *object) {
  char path[32], text[512];
  snprintf(path, sizeof path, "%d/stat", call->pid);
  const int fd = openat(observe.proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ENXIO;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return ENXIO;
  text[n] = '\0';
  int terminal = 0;
  const char *end = strrchr(text, ')');
  if (end == NULL || sscanf(end + 1, " %*c %*d %*d %*d %d", &terminal) != 1 || terminal == 0) return ENXIO;
  /* proc_pid_stat(5): the minor number in bits 31 to 20 and 7 to 0. The host's slaves have the majors 136 to 143. */
  const unsigned number = (unsigned)terminal, kind = (number >> 8) & 0xfff;
  if (kind < 136 || kind > 143) return ENXIO;
  snprintf(path, sizeof path, "dev/pts/%u", (number & 0xff) | ((number >> 12) & 0xfff00));
  *object = openat(observe.root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return *object < 0 ? ENXIO : 0;
}

static bool is_harmless(const struct place *place) {
  static const char *const PATHS[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
  for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
    if (strcmp(place->path, PATHS[i]) == 0) return true;
  return false;
}

static int read_text(int folder, const char *name, char to[PATH_MAX]) {
  const ssize_t n = readlinkat(folder, name, to, PATH_MAX - 1);
  if (n < 0) return errno;
  to[n] = '\0';
  return n == 0 ? ENOENT : 0;
}

/* Outside of what the session writes in. True: answered. False: `*target` is where a link leads to. */
static bool open_outside(struct call *call, struct place *place, int flags, mode_t mode, char target[PATH_MAX]) {
  if (strcmp(place->path, "/dev/tty") == 0) {
    int terminal;
    const int error = own_terminal(call, &terminal);
    if (error != 0) call_fail(call, error);
    else open_object(call, terminal, flags);
    return true;
  }
  const int object = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat s;
  if (object < 0 && errno == ENOENT && (flags & O_CREAT) != 0) {
    const int fd = floor_open(place->folder, place->name, flags | O_NOFOLLOW, mode, current_umask());
    if (fd < 0) call_fail(call, -fd);
    else give_waiting(call, fd, flags);
    return true;
  }
  if (object < 0 || fstat(object, &s) != 0) {
    call_fail(call, errno);
    if (object >= 0) close(object);
    return true;
  }
  if (!S_ISLNK(s.st_mode)) {
    open_object(call, object, flags);
    return true;
  }
  close(object);
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    call_fail(call, EEXIST);
    return true;
  }
  if ((flags & O_NOFOLLOW) != 0) {
    call_fail(call, (flags & O_DIRECTORY) != 0 ? ENOTDIR : ELOOP);
    return true;
  }
  bool magic;
  int found;
  const int error = object_walk(call, place->folder, place->name, true, &found, &magic);
  if (error == 0 && magic) {
    open_object(call, found, flags);
    return true;
  }
  if (error == 0) close(found);
  const int unread = read_text(place->folder, place->name, target);
  if (unread == 0) return false;
  call_fail(call, unread);
  return true;
}

/* What the table says of an open; true where the call has its answer. */
static bool is_judged(struct call *call, const struct place *place, const struct rule *rule) {
  if (rule->outcome != RULE_REFUSE && rule->outcome != RULE_MEDIATE) return false;
  channel_event(call, EVENT_REFUSED, CALL_OPEN, EACCES, rule->index, place->path);
  call_fail(call, EACCES);
  return true;
}

/* What was made under a masked name is masked before the call returns. */
static int mask_new(struct call *call, const struct place *place, const struct rule *rule) {
  const int error = mask_lay(place);
  channel_event(call, error == 0 ? EVENT_MASKED : EVENT_REFUSED, CALL_OPEN, error, rule->index, place->path);
  if (error != 0) unlinkat(place->folder, place->name, 0);
  return error == 0 ? 0 : EACCES;
}

/* What a grant lets be opened: files, what is not there yet, and what the kernel then says something else of. The disk outside has devices and pipes too. */
static bool is_plain_file(const struct place *place) {
  struct stat s;
  if (fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) != 0) return true;
  return S_ISREG(s.st_mode) || S_ISLNK(s.st_mode) || S_ISDIR(s.st_mode);
}

/* One step: answered (0), or where a link leads to (1). */
static int open_step(struct call *call, struct place *place, int flags, mode_t mode, char target[PATH_MAX]) {
  if (place->has_slash || !place->is_plain) {
    int error = EISDIR;
    if (!place->is_plain && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) error = EEXIST;
    if ((flags & O_CREAT) == 0 && place->is_plain) {
      int found = -1;
      bool magic;
      const int unfound = object_walk(call, seen_folder(place), place->name, true, &found, &magic);
      if (unfound != 0) error = unfound;
      else close(found);
    }
    call_fail(call, error);
    return 0;
  }
  const struct rule rule = rule_of(place, IS_FILE);
  if (place->grant != 0 && !is_plain_file(place)) {
    call_fail(call, EACCES);
    return 0;
  }
  if (!may_change(place)) {
    if (!is_harmless(place)) return open_outside(call, place, flags, mode, target) ? 0 : 1;
  } else if (rule.outcome == RULE_MEDIATE && rule.mediator == NAMES_GIT_POINTER && (flags & O_ACCMODE) != O_RDONLY) {
    const int error = pointer_open(call, place, &rule, flags, mode & ~current_umask());
    if (error != 0) call_fail(call, error);
    return 0;
  } else if (is_judged(call, place, &rule)) {
    return 0;
  }
  const int git = (flags & O_CREAT) != 0 ? rule_git_dir(call, place, CALL_OPEN) : 0;
  if (git != 0) {
    call_fail(call, git);
    return 0;
  }
  const bool is_masked = rule.outcome == RULE_MASK;
  /* A masked name that stands there is not written to: only a new one is, and then it is masked. */
  const int more = is_masked && (flags & O_CREAT) != 0 ? O_EXCL : 0;
  /* A file that is new is no pipe. */
  const bool is_new = (flags & O_CREAT) != 0 && ((flags | more) & O_EXCL) != 0;
  const int fd = act_open(place, place->name, flags | more | O_NOFOLLOW | (is_new ? 0 : O_NONBLOCK) | O_NOCTTY | O_CLOEXEC, mode);
  if (fd >= 0) {
    int error = 0;
    struct stat s;
    /* From a folder of the disk outside one could go anywhere there. */
    if (place->grant != 0 && (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))) error = EACCES;
    if (is_masked && (flags & O_CREAT) != 0) error = mask_new(call, place, &rule);
    if (error == 0 && rule.outcome == RULE_RECORD) channel_event(call, EVENT_RECORDED, CALL_OPEN, 0, rule.index, place->path);
    if (error != 0) {
      close(fd);
      call_fail(call, error);
    } else if (is_new) {
      give(call, fd, flags);
    } else {
      give_waiting(call, fd, flags);
    }
    return 0;
  }
  int error = errno;
  struct stat s;
  if (error == ENXIO && (flags & O_NONBLOCK) == 0 && fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(s.st_mode)) {
    const int object = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (object >= 0) {
      floor_wait(call, object, flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
      return 0;
    }
    error = errno;
  }
  if ((error == ELOOP || (error == ENOTDIR && (flags & O_DIRECTORY) != 0)) && (flags & O_NOFOLLOW) == 0) {
    const int was = error;
    error = read_text(place->folder, place->name, target);
    if (error == 0) return 1;
    /* It is none, or was one a moment ago. */
    if (error == EINVAL) error = was;
  }
  if (error == EEXIST && more != 0 && (flags & O_EXCL) == 0) error = EACCES;
  call_fail(call, error);
  return 0;
}

/* A file without a name in a folder; linkat gives it one, and is judged. */
static void open_unnamed(struct call *call, int dirfd, const char *path, int flags, mode_t mode) {
  int folder;
  bool magic;
  int error = object_find(call, dirfd, path, true, (flags & O_NOFOLLOW) == 0, &folder, &magic);
  if (error == 0 && !call_waits(call)) {
    close(folder);
    error = ESRCH;
  }
  if (error != 0) return call_fail(call, error);
  /* It could get no name there: programs take one that has a name from the start. */
  if (grants_any() && grant_reaches(folder)) {
    close(folder);
    return call_fail(call, EOPNOTSUPP);
  }
  const int fd = openat(folder, ".", flags | O_CLOEXEC, mode);
  error = errno;
  close(folder);
  if (fd < 0) return call_fail(call, error);
  give(call, fd, flags);
}

void do_open(struct call *call, int dirfd, uint64_t path, int flags, mode_t mode) {
  char text[PATH_MAX], target[PATH_MAX];
  const int flaw = (flags & TMPFILE) != 0 && ((flags & O_ACCMODE) == O_RDONLY || (flags & O_DIRECTORY) == 0 || (flags & O_CREAT) != 0) ? EINVAL
                   : (flags & O_CREAT) != 0 && (flags & O_DIRECTORY) != 0                                                            ? EINVAL
                                                                                                                                      : 0;
  if (flaw != 0) return call_fail(call, flaw);
  int error = caller_text(call, path, text);
  if (error == 0 && (flags & (O_ACCMODE | O_CREAT | O_TRUNC | TMPFILE)) == 0) return do_read(call, dirfd, text, flags);
  if (error == 0) error = caller_umask(call);
  if (error != 0) return call_fail(call, error);
  if ((flags & TMPFILE) != 0) return open_unnamed(call, dirfd, text, flags, mode);
  struct place *place = malloc(sizeof *place);
  if (place == NULL) return call_fail(call, ENOMEM);
  bool alone = false;
again:
  names_lock(alone);
  error = place_find(call, dirfd, text, place);
  for (int links = 0; error == 0; links++) {
    if (!alone && rule_wants_alone(place)) {
      place_close(place);
      names_unlock();
      alone = true;
      goto again;
    }
    error = !call_waits(call) ? ESRCH : links > LINKS_MAX ? ELOOP : 0;
    if (error != 0 || open_step(call, place, flags, mode & 07777, target) == 0) break;
    error = place_follow(call, target, place);
  }
  place_close(place);
  names_unlock();
  free(place);
  if (error != 0) call_fail(call, error);
}

void do_truncate(struct call *call, uint64_t path, int64_t length) {
  char text[PATH_MAX];
  int error = length < 0 ? EINVAL : caller_text(call, path, text), object = -1;
  bool magic;
  names_lock(false);
  if (error == 0) error = object_find(call, AT_FDCWD, text, false, true, &object, &magic);
  if (error == 0 && !call_waits(call)) error = ESRCH;
  uint32_t grant = 0;
  if (error == 0 && is_guarded(call, &object, CALL_TRUNCATE, &grant)) error = EACCES;
  if (error == 0) {
    char real[PATH_MAX];
    size_t n;
    error = path_of(object, real, sizeof real, &n);
    const bool inside = error == 0 && (grant != 0 || (is_writable(real, n) && !magic));
    if (inside) error = (grant != 0 ? act_truncate(object, length) : truncate(path_to(object).text, length)) == 0 ? 0 : errno;
    else if (error == 0) error = -floor_truncate(object, length);
  }
  names_unlock();
  if (object >= 0) close(object);
  call_fail(call, error);
}
