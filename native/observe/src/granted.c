/* Removing names, and changing modes and times. Nothing of the table holds here: mounts and Landlock do, and what they allow goes on as if nobody had been asked.
 * Only where a grant lets the session write it is done from outside of both. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static enum rule_kind kind_at(const struct place *place) {
  struct stat s;
  if (fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) != 0) return IS_OTHER;
  return S_ISDIR(s.st_mode) ? IS_FOLDER : S_ISREG(s.st_mode) ? IS_FILE : IS_OTHER;
}

/* True: answered. */
static bool remove_at(struct call *call, const struct place *place, int flags) {
  const enum rule_call what = flags == 0 ? CALL_UNLINK : CALL_RMDIR;
  const struct rule rule = rule_of(place, kind_at(place));
  if (place->grant == 0) return false;
  if (rule.outcome == RULE_REFUSE) {
    channel_event(call, EVENT_REFUSED, what, EACCES, rule.index, place->path);
    call_fail(call, EACCES);
    return true;
  }
  if (!call_waits(call)) return false;
  const int error = unlinkat(place->folder, place->name, flags) == 0 ? 0 : errno;
  if (error == 0) channel_event(call, EVENT_RECORDED, what, 0, RULE_IS_GRANT | place->grant, place->path);
  call_fail(call, error);
  return true;
}

void do_unlink(struct call *call, int dirfd, uint64_t path, int flags) {
  char text[PATH_MAX];
  if (!grants_any() || (flags & ~AT_REMOVEDIR) != 0 || caller_text(call, path, text) != 0) return call_continue(call);
  struct place *place = malloc(sizeof *place);
  if (place == NULL) return call_fail(call, ENOMEM);
  names_lock(false);
  const bool is_answered = place_find(call, dirfd, text, place) == 0 && remove_at(call, place, flags);
  place_close(place);
  names_unlock();
  free(place);
  if (!is_answered) call_continue(call);
}

/* --- modes and times ------------------------------------------------------------------------------------------------ */

static int find_object(const struct call *call, int dirfd, uint64_t path, bool follow, int *object) {
  char text[PATH_MAX];
  bool magic;
  const int error = caller_text(call, path, text);
  return error != 0 ? error : object_find(call, dirfd, text, false, follow, object, &magic);
}

/* The object becomes that of the disk outside where a grant lets the session write to it; returns whether one does. */
static bool is_granted(const struct call *call, int *object, enum rule_call what) {
  struct place *place = malloc(sizeof *place);
  struct stat s;
  bool granted = false;
  if (place != NULL && fstat(*object, &s) == 0 && place_of(*object, place) == 0 && place->grant != 0) {
    const struct rule rule = rule_of(place, S_ISDIR(s.st_mode) ? IS_FOLDER : IS_FILE);
    granted = rule.outcome == RULE_RECORD && call_waits(call) && grant_object(place, object);
    if (granted) channel_event(call, EVENT_RECORDED, what, 0, rule.index, place->path);
  }
  if (place != NULL) place_close(place);
  free(place);
  return granted;
}

void do_mode(struct call *call, int dirfd, uint64_t path, mode_t mode) {
  int object = -1;
  if (!grants_any()) return call_continue(call);
  names_lock(false);
  const bool granted = find_object(call, dirfd, path, true, &object) == 0 && is_granted(call, &object, CALL_MODE);
  const int error = granted && fchmodat(observe.fds, path_to(object).text, mode & 07777, 0) != 0 ? errno : 0;
  names_unlock();
  if (object >= 0) close(object);
  if (granted) call_fail(call, error);
  else call_continue(call);
}

void do_times(struct call *call, int dirfd, uint64_t path, uint64_t times, int flags) {
  struct timespec both[2];
  int object = -1;
  /* Without a path it is about a descriptor, which is open to write by a grant already. */
  if (!grants_any() || path == 0 || (flags & ~AT_SYMLINK_NOFOLLOW) != 0 || (times != 0 && caller_bytes(call, times, both, sizeof both) != 0)) return call_continue(call);
  names_lock(false);
  const bool granted = find_object(call, dirfd, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &object) == 0 && is_granted(call, &object, CALL_TIMES);
  const int error = granted && utimensat(observe.fds, path_to(object).text, times != 0 ? both : NULL, 0) != 0 ? errno : 0;
  names_unlock();
  if (object >= 0) close(object);
  if (granted) call_fail(call, error);
  else call_continue(call);
}
