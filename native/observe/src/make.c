/* Making folders, nodes and symbolic links. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct making {
  enum rule_call what;
  enum rule_kind kind;
  mode_t mode;
  dev_t device;
  const char *target;
};

static int carry_out(const struct making *m, const struct place *place) {
  int result;
  switch (m->what) {
    case CALL_FOLDER: result = act_mkdir(place, m->mode); break;
    case CALL_NODE: result = act_mknod(place, m->mode, m->device); break;
    default: result = act_symlink(m->target, place);
  }
  return result == 0 ? 0 : errno;
}

static void take_back(const struct making *m, const struct place *place) { unlinkat(place->folder, place->name, m->what == CALL_FOLDER ? AT_REMOVEDIR : 0); }

/* Found and locked: what the table says, and then the call itself. */
static int make_at(const struct call *call, const struct making *m, const struct place *place) {
  const struct rule rule = rule_of(place, m->kind);
  struct stat s;
  /* What is there already is nothing new, whatever it is called. */
  if (rule.outcome != RULE_FREE && fstatat(place->folder, place->name, &s, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  /* What is granted are files and folders. */
  if (place->grant != 0 && m->kind == IS_OTHER) return EACCES;
  if (may_change(place)) {
    if (rule.outcome == RULE_REFUSE || rule.outcome == RULE_MEDIATE) {
      channel_event(call, EVENT_REFUSED, m->what, EACCES, rule.index, place->path);
      return EACCES;
    }
    const int git = rule_git_dir(call, place, m->what);
    if (git != 0) return git;
  }
  const int error = carry_out(m, place);
  if (error != 0) return error;
  if (rule.outcome == RULE_RECORD) channel_event(call, EVENT_RECORDED, m->what, 0, rule.index, place->path);
  /* A link shows nothing that could not be read by its own path. */
  if (rule.outcome == RULE_MASK && m->what != CALL_LINK) {
    const int unlaid = mask_lay(place);
    channel_event(call, unlaid == 0 ? EVENT_MASKED : EVENT_REFUSED, m->what, unlaid, rule.index, place->path);
    if (unlaid != 0) {
      take_back(m, place);
      return EACCES;
    }
  }
  return 0;
}

static void make(struct call *call, const struct making *m, int dirfd, uint64_t path) {
  char text[PATH_MAX];
  int error = caller_text(call, path, text);
  if (error == 0 && m->what != CALL_LINK) error = caller_umask(call);
  struct place *place = error == 0 ? malloc(sizeof *place) : NULL;
  if (place == NULL) return call_fail(call, error != 0 ? error : ENOMEM);
  for (bool alone = false;; alone = true) {
    names_lock(alone);
    error = place_find(call, dirfd, text, place);
    const bool again = error == 0 && !alone && rule_wants_alone(place);
    if (error == 0 && !again) error = call_waits(call) ? make_at(call, m, place) : ESRCH;
    place_close(place);
    names_unlock();
    if (!again) break;
  }
  free(place);
  call_fail(call, error);
}

void do_mkdir(struct call *call, int dirfd, uint64_t path, mode_t mode) {
  const struct making m = {.what = CALL_FOLDER, .kind = IS_FOLDER, .mode = mode};
  make(call, &m, dirfd, path);
}

void do_mknod(struct call *call, int dirfd, uint64_t path, mode_t mode, dev_t device) {
  /* The filter has refused devices; this thread has no right to make one either. */
  /* As the kernel, before it looks for the path. */
  if (S_ISDIR(mode)) return call_fail(call, EPERM);
  if ((mode & S_IFMT) != 0 && !S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISCHR(mode) && !S_ISBLK(mode)) return call_fail(call, EINVAL);
  const struct making m = {.what = CALL_NODE, .kind = S_ISREG(mode) || (mode & S_IFMT) == 0 ? IS_FILE : IS_OTHER, .mode = mode, .device = device};
  make(call, &m, dirfd, path);
}

void do_symlink(struct call *call, uint64_t target, int dirfd, uint64_t path) {
  char text[PATH_MAX];
  const int error = caller_text(call, target, text);
  if (error != 0) return call_fail(call, error);
  const struct making m = {.what = CALL_LINK, .kind = IS_LINK, .target = text};
  make(call, &m, dirfd, path);
}
