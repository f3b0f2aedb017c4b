/* Modes, owners, times and attributes: Landlock has no rights on them. Each is changed through a descriptor of what was looked at. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define NR_FCHMODAT2 452
#define INT(index) ((int)(uint32_t)call->args[index])
/* XATTR_NAME_MAX, XATTR_SIZE_MAX */
#define NAME_ROOM 256u
#define VALUE_MAX 65536u

enum kind { MODE, OWNER, TIMES, SET_ATTRIBUTE, REMOVE_ATTRIBUTE };
static const enum rule_call calls[] = {CALL_MODE, CALL_OWNER, CALL_TIMES, CALL_ATTRIBUTE, CALL_ATTRIBUTE};

struct change {
  enum kind kind;
  int dirfd;       /* or the descriptor itself, where there is no path */
  uint64_t path;   /* 0: none */
  int flags;       /* AT_* */
  mode_t mode;
  uid_t user;
  gid_t group;
  struct timespec times[2];
  char name[NAME_ROOM];
  unsigned char *value;
  size_t size;
  int how; /* XATTR_* */
};

static bool is_root_of_writable(const char *path, size_t length) {
  char below[PATH_MAX + 2];
  if (length + 2 > sizeof below) return false;
  memcpy(below, path, length);
  memcpy(below + length, "/.", 3);
  return is_writable(below, length + 2);
}

static enum rule_kind kind_of(const struct stat *s) { return S_ISDIR(s->st_mode) ? IS_FOLDER : S_ISLNK(s->st_mode) ? IS_LINK : IS_FILE; }

/* Modes and times of what a grant lets the session write; owners and attributes are no part of that, but for who has it open: programs that copy keep them so. */
static bool is_granted(const struct call *call, const struct change *c, const struct stat *s, const struct place *place) {
  if (place->grant == 0 || (c->path != 0 && c->kind != MODE && c->kind != TIMES) || !(S_ISREG(s->st_mode) || S_ISDIR(s->st_mode))) return false;
  const struct rule rule = rule_of(place, kind_of(s));
  if (rule.outcome != RULE_RECORD) return false;
  channel_event(call, EVENT_RECORDED, calls[c->kind], 0, rule.index, place->path);
  return true;
}

static int may_alter(const struct call *call, const struct change *c, int object) {
  struct stat s;
  struct place *place = malloc(sizeof *place);
  if (place == NULL) return ENOMEM;
  int error = fstat(object, &s) != 0 ? errno : place_of(object, place);
  static const char memory[] = "/memfd:";
  /* What has no path is the session's: pipes, sockets, memory. */
  if (error == 0 && place->path[0] == '/' && strncmp(place->path, memory, sizeof memory - 1) != 0 && !is_granted(call, c, &s, place)) {
    if (!is_root_of_writable(place->path, place->path_length)) {
      error = EPERM;
    } else if (is_writable(place->path, place->path_length)) {
      place->grant = 0;
      const struct rule rule = rule_of(place, kind_of(&s));
      if (rule.outcome == RULE_REFUSE) {
        channel_event(call, EVENT_REFUSED, calls[c->kind], EACCES, rule.index, place->path);
        error = EACCES;
      }
    }
  }
  free(place);
  return error;
}

/* This thread's working folder is that of its descriptors: a number is the path of what it stands for. */
static int carry_out(const struct change *c, int object) {
  const struct fd_path path = path_to(object);
  struct stat s;
  int result;
  switch (c->kind) {
    case MODE:
      if (fstat(object, &s) == 0 && S_ISLNK(s.st_mode)) return EOPNOTSUPP;
      result = chmod(path.text, c->mode & 07777);
      break;
    case OWNER: result = fchownat(object, "", c->user, c->group, AT_EMPTY_PATH); break;
    case TIMES: result = utimensat(object, "", c->times, AT_EMPTY_PATH); break;
    case SET_ATTRIBUTE: result = setxattr(path.text, c->name, c->value, c->size, c->how); break;
    default: result = removexattr(path.text, c->name);
  }
  return result == 0 ? 0 : errno;
}

static void change(struct call *call, const struct change *c) {
  char text[PATH_MAX];
  int object = -1;
  bool magic;
  int error = c->path != 0 ? caller_text(call, c->path, text) : 0;
  const bool is_empty = error == ENOENT && (c->flags & AT_EMPTY_PATH) != 0;
  if (is_empty) error = 0;
  names_lock(false);
  if (error == 0) {
    if (c->path != 0 && !is_empty) error = object_find(call, c->dirfd, text, text[strlen(text) - 1] == '/', (c->flags & AT_SYMLINK_NOFOLLOW) == 0, &object, &magic);
    else error = c->dirfd == AT_FDCWD ? caller_folder(call, c->dirfd, &object) : caller_object(call, c->dirfd, &object);
  }
  if (error == 0 && !call_waits(call)) error = ESRCH;
  if (error == 0) error = may_alter(call, c, object);
  if (error == 0) error = carry_out(c, object);
  names_unlock();
  if (object >= 0) close(object);
  call_fail(call, error);
}

/* --- reading the arguments ----------------------------------------------------------------------------------------- */

static int read_times(const struct call *call, uint64_t at, struct change *c) {
  c->times[0] = c->times[1] = (struct timespec){.tv_nsec = UTIME_NOW};
  return at == 0 ? 0 : caller_bytes(call, at, c->times, sizeof c->times);
}

static int read_microseconds(const struct call *call, uint64_t at, struct change *c) {
  struct timeval v[2];
  const int error = read_times(call, 0, c);
  if (error != 0 || at == 0) return error;
  if (caller_bytes(call, at, v, sizeof v) != 0) return EFAULT;
  for (int i = 0; i < 2; i++) {
    if (v[i].tv_usec < 0 || v[i].tv_usec > 999999) return EINVAL;
    c->times[i] = (struct timespec){.tv_sec = v[i].tv_sec, .tv_nsec = v[i].tv_usec * 1000};
  }
  return 0;
}

#ifdef SYS_utime
static int read_seconds(const struct call *call, uint64_t at, struct change *c) {
  struct utimbuf v;
  const int error = read_times(call, 0, c);
  if (error != 0 || at == 0) return error;
  if (caller_bytes(call, at, &v, sizeof v) != 0) return EFAULT;
  c->times[0] = (struct timespec){.tv_sec = v.actime};
  c->times[1] = (struct timespec){.tv_sec = v.modtime};
  return 0;
}
#endif

static int read_attribute(const struct call *call, struct change *c) {
  char name[PATH_MAX];
  const int error = caller_text(call, call->args[1], name);
  if (error != 0) return error == ENOENT || error == ENAMETOOLONG ? ERANGE : error;
  if (strlen(name) >= sizeof c->name) return ERANGE;
  strcpy(c->name, name);
  if (c->kind == REMOVE_ATTRIBUTE) return 0;
  c->size = (size_t)call->args[3];
  c->how = INT(4);
  if (c->size > VALUE_MAX) return E2BIG;
  c->value = malloc(c->size + 1);
  if (c->value == NULL) return ENOMEM;
  return c->size == 0 ? 0 : caller_bytes(call, call->args[2], c->value, c->size);
}

/* What is asked for; an errno where the arguments are wrong, -1 where it is no such call. */
static int read_change(const struct call *call, struct change *c) {
  const uint64_t *a = call->args;
  const int at_flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  switch (call->number) {
    case SYS_fchmod: *c = (struct change){.kind = MODE, .dirfd = INT(0), .mode = (mode_t)a[1]}; return 0;
    case SYS_fchmodat: *c = (struct change){.kind = MODE, .dirfd = INT(0), .path = a[1], .mode = (mode_t)a[2]}; return 0;
    case NR_FCHMODAT2:
      *c = (struct change){.kind = MODE, .dirfd = INT(0), .path = a[1], .mode = (mode_t)a[2], .flags = INT(3)};
      return (c->flags & ~at_flags) != 0 ? EINVAL : 0;
    case SYS_fchown: *c = (struct change){.kind = OWNER, .dirfd = INT(0), .user = (uid_t)a[1], .group = (gid_t)a[2]}; return 0;
    case SYS_fchownat:
      *c = (struct change){.kind = OWNER, .dirfd = INT(0), .path = a[1], .user = (uid_t)a[2], .group = (gid_t)a[3], .flags = INT(4)};
      return (c->flags & ~at_flags) != 0 ? EINVAL : 0;
    case SYS_utimensat:
      *c = (struct change){.kind = TIMES, .dirfd = INT(0), .path = a[1], .flags = INT(3)};
      return (c->flags & ~at_flags) != 0 ? EINVAL : read_times(call, a[2], c);
    case SYS_setxattr:
    case SYS_lsetxattr: *c = (struct change){.kind = SET_ATTRIBUTE, .dirfd = AT_FDCWD, .path = a[0], .flags = call->number == SYS_lsetxattr ? AT_SYMLINK_NOFOLLOW : 0}; return read_attribute(call, c);
    case SYS_fsetxattr: *c = (struct change){.kind = SET_ATTRIBUTE, .dirfd = INT(0)}; return read_attribute(call, c);
    case SYS_removexattr:
    case SYS_lremovexattr: *c = (struct change){.kind = REMOVE_ATTRIBUTE, .dirfd = AT_FDCWD, .path = a[0], .flags = call->number == SYS_lremovexattr ? AT_SYMLINK_NOFOLLOW : 0}; return read_attribute(call, c);
    case SYS_fremovexattr: *c = (struct change){.kind = REMOVE_ATTRIBUTE, .dirfd = INT(0)}; return read_attribute(call, c);
#ifdef SYS_chmod
    case SYS_chmod: *c = (struct change){.kind = MODE, .dirfd = AT_FDCWD, .path = a[0], .mode = (mode_t)a[1]}; return 0;
    case SYS_chown:
    case SYS_lchown:
      *c = (struct change){.kind = OWNER, .dirfd = AT_FDCWD, .path = a[0], .user = (uid_t)a[1], .group = (gid_t)a[2], .flags = call->number == SYS_lchown ? AT_SYMLINK_NOFOLLOW : 0};
      return 0;
    case SYS_utime: *c = (struct change){.kind = TIMES, .dirfd = AT_FDCWD, .path = a[0]}; return read_seconds(call, a[1], c);
    case SYS_utimes: *c = (struct change){.kind = TIMES, .dirfd = AT_FDCWD, .path = a[0]}; return read_microseconds(call, a[1], c);
    case SYS_futimesat: *c = (struct change){.kind = TIMES, .dirfd = INT(0), .path = a[1]}; return read_microseconds(call, a[2], c);
#endif
    default: return -1;
  }
}

/* A null pointer is no path, but for calls that mean the descriptor by it. */
static bool lacks_path(const struct call *call, const struct change *c) {
  if (c->path != 0) return false;
  switch (call->number) {
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fsetxattr:
    case SYS_fremovexattr: return false;
#ifdef SYS_futimesat
    case SYS_futimesat: return false;
#endif
    case SYS_utimensat: return c->dirfd == AT_FDCWD;
    default: return true;
  }
}

bool metadata_dispatch(struct call *call) {
  struct change c = {.kind = MODE};
  int error = read_change(call, &c);
  if (error < 0) return false;
  if (error == 0 && lacks_path(call, &c)) error = EFAULT;
  if (error != 0) call_fail(call, error);
  else change(call, &c);
  free(c.value);
  return true;
}
