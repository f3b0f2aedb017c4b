/* Taking names away, where no mount holds those that are protected. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int may_take_away(const struct call *call, const struct place *place, const struct stat *s, int flags) {
  const bool is_folder = S_ISDIR(s->st_mode);
  if (is_folder && (flags & AT_REMOVEDIR) != 0 && bare_is_held(s)) return EBUSY;
  if (!may_change(place)) return 0;
  const struct rule rule = rule_of(place, is_folder ? IS_FOLDER : S_ISLNK(s->st_mode) ? IS_LINK : IS_FILE);
  if (rule.outcome != RULE_REFUSE) return 0;
  channel_event(call, EVENT_REFUSED, is_folder ? CALL_RMDIR : CALL_UNLINK, EACCES, rule.index, place->path);
  return EACCES;
}

void do_remove(struct call *call, int dirfd, uint64_t path, int flags) {
  char text[PATH_MAX];
  struct stat s;
  if ((flags & ~AT_REMOVEDIR) != 0) return call_fail(call, EINVAL);
  int error = caller_text(call, path, text);
  struct place *place = error == 0 ? malloc(sizeof *place) : NULL;
  if (place == NULL) return call_fail(call, error != 0 ? error : ENOMEM);
  /* Alone: what was looked at is what is taken away. */
  names_lock(true);
  error = place_find(call, dirfd, text, place);
  if (error == 0 && !call_waits(call)) error = ESRCH;
  if (error == 0 && place->is_plain && fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) == 0) error = may_take_away(call, place, &s, flags);
  if (error == 0 && act_unlink(place, place->name, flags) != 0) error = errno;
  if (error == 0 && place->grant != 0) channel_event(call, EVENT_RECORDED, flags != 0 ? CALL_RMDIR : CALL_UNLINK, 0, RULE_IS_GRANT | place->grant, place->path);
  place_close(place);
  names_unlock();
  free(place);
  call_fail(call, error);
}
