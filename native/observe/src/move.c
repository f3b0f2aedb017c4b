/* Renaming, and giving a file a second name. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2u
#endif
#define RENAME_ALL 7u
#define AGAIN (-1)   /* once more, alone */
#define ASK (-2)     /* the front is asked, without the lock */

/* Two places of one call, with what stands at the first. */
struct pair {
  struct place from, to;
  struct stat stat;
  bool is_there;
};

static enum rule_kind kind_of(const struct stat *s) { return S_ISDIR(s->st_mode) ? IS_FOLDER : S_ISLNK(s->st_mode) ? IS_LINK : S_ISREG(s->st_mode) ? IS_FILE : IS_OTHER; }

/* The last component without slashes behind it; false where no file can be called so. */
static bool name_of(const struct place *place, char name[NAME_MAX + 1]) {
  if (place->name_length > NAME_MAX) return false;
  memcpy(name, place->name, place->name_length);
  name[place->name_length] = '\0';
  return true;
}

static bool stat_at(const struct place *place, struct stat *s) {
  char name[NAME_MAX + 1];
  return name_of(place, name) && fstatat(place->folder, name, s, AT_SYMLINK_NOFOLLOW) == 0;
}

static int refused(const struct call *call, enum rule_call what, const struct rule *rule, const struct place *place) {
  channel_event(call, EVENT_REFUSED, what, EACCES, rule->index, place->path);
  return EACCES;
}

/* Whether a folder may go from one place to the other with all that lies in it. */
static int tree_may_move(const struct call *call, const struct place *from, const struct place *to) {
  char name[NAME_MAX + 1];
  if (!name_of(from, name)) return ENAMETOOLONG;
  const int folder = openat(from->folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return errno;
  struct names_found *found = malloc(sizeof *found);
  if (found == NULL) {
    close(folder);
    return ENOMEM;
  }
  const enum names_move verdict = names_may_move(observe.names, &observe.disk, folder, from->path, from->path_length, to->path, to->path_length, found);
  close(folder);
  if (verdict == NAMES_MOVE_REFUSED) {
    char path[sizeof to->path + NAMES_PATH_MAX + 2];
    snprintf(path, sizeof path, "%s%s%s", to->path, found->path[0] != '\0' ? "/" : "", found->path);
    channel_event(call, EVENT_REFUSED, CALL_RENAME_TO, EACCES, found->after.leaf != NAMES_NONE ? found->after.leaf : found->before.leaf, path);
  }
  free(found);
  return verdict == NAMES_MOVE_FREE ? 0 : verdict == NAMES_MOVE_REFUSED ? EACCES : EXDEV;
}

/* What leaves `from` and stands at `to` afterwards. 0: it may; ASK; or an errno. */
static int may_move(const struct call *call, const struct place *from, const struct place *to, const struct stat *s, struct rule *target) {
  const enum rule_kind kind = kind_of(s);
  /* As Landlock: a device is made nowhere, by no name. */
  if (!from->has_slash && (S_ISCHR(s->st_mode) || S_ISBLK(s->st_mode)) && is_writable(from->path, from->path_length) && is_writable(to->path, to->path_length)) return EACCES;
  if (kind == IS_FOLDER && bare_is_held(s)) return EBUSY;
  const struct rule source = rule_of(from, kind);
  *target = rule_of(to, kind);
  if (kind == IS_FOLDER && bare_is_above(from->path, from->path_length)) return refused(call, CALL_RENAME_FROM, &source, from);
  if (source.outcome == RULE_REFUSE || source.outcome == RULE_MEDIATE) return refused(call, CALL_RENAME_FROM, &source, from);
  if (source.outcome == RULE_MASK && target->outcome != RULE_MASK) return refused(call, CALL_RENAME_FROM, &source, from);
  if (target->outcome == RULE_REFUSE) return refused(call, CALL_RENAME_TO, target, to);
  if (kind == IS_FOLDER || rule_wants_alone(to)) {
    const int error = kind == IS_FOLDER ? tree_may_move(call, from, to) : 0;
    return error != 0 ? error : rule_git_dir(call, to, CALL_RENAME_TO);
  }
  return target->outcome == RULE_MEDIATE ? ASK : 0;
}

/* A path that was read from a caller, or why it was not. */
struct read {
  int error;
  char text[PATH_MAX];
};

/* Between a place that is granted and one that is the session's anyway: both on the disk outside. */
static void align(struct pair *pair) {
  grant_align(&pair->from);
  grant_align(&pair->to);
}

/* What goes from one grant to another, or to where none is needed, leaves nothing behind by which it could be changed when the grant has ended: programs copy the
 * rest. */
static bool may_cross(const struct pair *pair) {
  return pair->from.grant == pair->to.grant || (S_ISREG(pair->stat.st_mode) && pair->stat.st_nlink == 1);
}

/* As the kernel: what is wrong with the second comes out once the first was found. */
static int pair_find(const struct call *call, struct pair *pair, int from_dirfd, const struct read *from, int to_dirfd, const struct read *to) {
  pair->from.folder = pair->to.folder = pair->from.seen = pair->to.seen = -1;
  int error = from->error != 0 ? from->error : place_find(call, from_dirfd, from->text, &pair->from);
  if (error == 0) error = to->error != 0 ? to->error : place_find(call, to_dirfd, to->text, &pair->to);
  if (error == 0 && !call_waits(call)) error = ESRCH;
  if (error == 0 && pair->from.grant != pair->to.grant) align(pair);
  if (error == 0) pair->is_there = pair->from.is_plain && stat_at(&pair->from, &pair->stat);
  return error;
}

static int rename_now(const struct pair *pair, unsigned flags) {
  return act_rename(&pair->from, pair->from.name, &pair->to, pair->to.name, flags) == 0 ? 0 : errno;
}

/* The kernel says what is wrong, by a name that is not there and that nobody can make: what could not be looked at just now may be there by now (a socket is
 * bound, a folder opened to oneself without asking), and was not judged. */
static int rename_absent(const struct pair *pair, unsigned flags, bool is_target) {
  char name[48];
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return EIO;
  snprintf(name, sizeof name, OWN_PREFIX "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
  const struct place *absent = is_target ? &pair->to : &pair->from;
  const char *text = absent->name_length > NAME_MAX ? absent->name : name;
  return act_rename(&pair->from, is_target ? pair->from.name : text, &pair->to, is_target ? text : pair->to.name, flags) == 0 ? EACCES : errno;
}

static int rename_found(const struct call *call, struct pair *pair, unsigned flags, struct rule *target) {
  struct stat there;
  /* The kernel says what is wrong with it. */
  if (!pair->from.is_plain || !pair->to.is_plain) return rename_now(pair, flags);
  if (!pair->is_there) return rename_absent(pair, flags, false);
  if (!may_cross(pair) || (pair->from.grant != pair->to.grant && flags == RENAME_EXCHANGE)) return EXDEV;
  int error = may_move(call, &pair->from, &pair->to, &pair->stat, target);
  if ((flags & RENAME_EXCHANGE) != 0 && error == 0) {
    struct rule back;
    if (!stat_at(&pair->to, &there)) return rename_absent(pair, flags, true);
    error = may_move(call, &pair->to, &pair->from, &there, &back);
    if (error == 0 && back.outcome == RULE_MASK) error = refused(call, CALL_RENAME_TO, &back, &pair->from);
  }
  /* As mv does it first: only where nothing is there. */
  if (error == ASK && flags == RENAME_NOREPLACE) return stat_at(&pair->to, &there) ? EEXIST : ASK;
  if (error == ASK && flags != 0) return refused(call, CALL_RENAME_TO, target, &pair->to);
  if (error != 0) return error;
  error = rename_now(pair, flags);
  if (error != 0) return error;
  if (pair->from.grant != 0) channel_event(call, EVENT_RECORDED, CALL_RENAME_FROM, 0, RULE_IS_GRANT | pair->from.grant, pair->from.path);
  if (target->outcome == RULE_RECORD) channel_event(call, EVENT_RECORDED, CALL_RENAME_TO, 0, target->index, pair->to.path);
  if (target->outcome == RULE_MASK) {
    error = mask_lay(&pair->to);
    channel_event(call, error == 0 ? EVENT_MASKED : EVENT_REFUSED, CALL_RENAME_TO, error, target->index, pair->to.path);
    if (error != 0 && renameat2(pair->to.folder, pair->to.name, pair->from.folder, pair->from.name, 0) != 0) unlinkat(pair->to.folder, pair->to.name, 0);
    if (error != 0) return EACCES;
  }
  return 0;
}

void do_rename(struct call *call, int from_dirfd, uint64_t from, int to_dirfd, uint64_t to, unsigned flags) {
  struct read old, new;
  if ((flags & ~RENAME_ALL) != 0 || ((flags & RENAME_EXCHANGE) != 0 && flags != RENAME_EXCHANGE)) return call_fail(call, EINVAL);
  old.error = caller_text(call, from, old.text);
  new.error = caller_text(call, to, new.text);
  struct pair *pair = malloc(sizeof *pair);
  if (pair == NULL) return call_fail(call, ENOMEM);
  struct rule target;
  /* Alone: what was looked at is what is moved, a file and not the link that another call has put there. */
  names_lock(true);
  int error = pair_find(call, pair, from_dirfd, &old, to_dirfd, &new);
  if (error == 0) error = rename_found(call, pair, flags, &target);
  names_unlock();
  if (error == ASK) error = mediate_rename(call, &pair->from, &pair->to, &target);
  place_close(&pair->from);
  place_close(&pair->to);
  free(pair);
  call_fail(call, error);
}

/* --- hard links ---------------------------------------------------------------------------------------------------- */

static int may_link(const struct call *call, const struct place *from, const struct place *to, const struct stat *s) {
  const enum rule_kind kind = kind_of(s);
  const struct rule source = rule_of(from, kind), target = rule_of(to, kind);
  struct stat there;
  if (stat_at(to, &there)) return EEXIST;
  /* A pipe or a socket has no path, and gets none. */
  if (from->is_plain && from->path[0] == '/' && source.outcome >= RULE_MASK) return refused(call, CALL_HARD_LINK, &source, from);
  if (target.outcome >= RULE_MASK) return refused(call, CALL_HARD_LINK, &target, to);
  /* By its second name it could be changed when the grant has ended. */
  if (from->grant != to->grant || source.is_lifted || target.is_lifted) return EXDEV;
  if (!from->has_slash && (S_ISCHR(s->st_mode) || S_ISBLK(s->st_mode)) && is_writable(from->path, from->path_length) && is_writable(to->path, to->path_length)) return EACCES;
  const int git = rule_git_dir(call, to, CALL_HARD_LINK);
  if (git == 0 && target.outcome == RULE_RECORD) channel_event(call, EVENT_RECORDED, CALL_HARD_LINK, 0, target.index, to->path);
  return git;
}

/* The file that gets a second name: by its place, or by a descriptor where a link or a descriptor of the caller leads to it. */
static int link_source(const struct call *call, struct pair *pair, int dirfd, const char *path, int flags, int *object) {
  const size_t length = strlen(path);
  const bool has_slash = length > 0 && path[length - 1] == '/';
  if ((flags & AT_SYMLINK_FOLLOW) == 0 && length > 0 && !has_slash) {
    const int error = place_find(call, dirfd, path, &pair->from);
    if (error != 0) return error;
    return fstatat(pair->from.folder, pair->from.name, &pair->stat, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  }
  bool magic;
  pair->from.is_plain = true;
  pair->from.has_slash = false;
  pair->from.grant = 0;
  int error = length > 0 ? object_find(call, dirfd, path, has_slash, true, object, &magic) : dirfd == AT_FDCWD ? caller_folder(call, dirfd, object) : caller_object(call, dirfd, object);
  if (error == 0 && fstat(*object, &pair->stat) != 0) error = errno;
  if (error == 0) error = path_of(*object, pair->from.path, PATH_MAX, &pair->from.path_length);
  if (error == 0) path_split_last(pair->from.path, &pair->from.name, &pair->from.name_length);
  return error;
}

static int link_now(const struct call *call, const struct pair *pair, int object) {
  if (!call_waits(call)) return ESRCH;
  const int error = pair->to.is_plain ? may_link(call, &pair->from, &pair->to, &pair->stat) : 0;
  if (error != 0) return error;
  const int result = object >= 0 ? act_link(observe.fds, path_to(object).text, &pair->to, AT_SYMLINK_FOLLOW) : act_link(pair->from.folder, pair->from.name, &pair->to, 0);
  return result == 0 ? 0 : errno;
}

void do_link(struct call *call, int from_dirfd, uint64_t from, int to_dirfd, uint64_t to, int flags) {
  struct read old, new;
  if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0) return call_fail(call, EINVAL);
  old.error = caller_text(call, from, old.text);
  if (old.error == ENOENT && (flags & AT_EMPTY_PATH) != 0) old.error = 0;
  new.error = caller_text(call, to, new.text);
  struct pair *pair = malloc(sizeof *pair);
  if (pair == NULL) return call_fail(call, ENOMEM);
  int error = AGAIN;
  for (bool alone = false; error == AGAIN; alone = true) {
    int object = -1;
    pair->from.folder = pair->to.folder = pair->from.seen = pair->to.seen = -1;
    names_lock(alone);
    error = old.error != 0 ? old.error : link_source(call, pair, from_dirfd, old.text, flags, &object);
    if (error == 0) error = new.error != 0 ? new.error : place_find(call, to_dirfd, new.text, &pair->to);
    if (error == 0) error = !alone && (rule_wants_alone(&pair->to) || rule_of(&pair->to, IS_LINK).outcome == RULE_REFUSE) ? AGAIN : link_now(call, pair, object);
    names_unlock();
    if (object >= 0) close(object);
    place_close(&pair->from);
    place_close(&pair->to);
  }
  free(pair);
  call_fail(call, error);
}
