/* Removing names. Nothing of the table holds here: mounts and Landlock do, and what they allow goes on as if nobody had been asked. Only where a grant lets the
 * session write it is done from outside of both. */
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
