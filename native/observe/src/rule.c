/* What the table says of a place, and the lock under which a place keeps its path. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Whoever wants to be alone is not kept waiting by ever new others; nobody takes it twice. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void names_lock(bool alone) {
  if (alone) pthread_rwlock_wrlock(&lock);
  else pthread_rwlock_rdlock(&lock);
}

void names_unlock(void) { pthread_rwlock_unlock(&lock); }

/* A pointer of git is a file: a folder of its name is a git directory, which has rules of its own; anything else of its name could lead elsewhere. */
static bool is_pointer_folder(const struct names_answer *answer, enum rule_kind kind) {
  return answer->treatment == NAMES_MEDIATE && answer->mediator == NAMES_GIT_POINTER && kind == IS_FOLDER;
}

struct rule rule_of(const struct place *place, enum rule_kind kind) {
  struct rule rule = {.outcome = RULE_FREE, .index = NAMES_NONE, .mediator = NAMES_NO_MEDIATOR};
  if (strncmp(place->name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0) {
    rule.outcome = RULE_REFUSE;
    return rule;
  }
  const size_t guard = bare_guard(place->path, place->path_length);
  if (guard > 0 && !(place->grant != 0 && grant_names(place->grant, guard))) {
    rule.outcome = RULE_REFUSE;
    return rule;
  }
  /* No file can be called so: the kernel says that. */
  if (place->name_length > NAME_MAX) return rule;
  struct names_answer answer;
  names_judge(observe.names, &observe.disk, place->path, place->path_length, &answer);
  rule.index = answer.leaf;
  rule.mediator = answer.mediator;
  if (answer.leaf == NAMES_NONE ? answer.treatment == NAMES_REFUSE : answer.treatment == NAMES_REFUSE || (answer.treatment == NAMES_MEDIATE && kind != IS_FILE && !is_pointer_folder(&answer, kind))) {
    rule.outcome = RULE_REFUSE;
  } else if (answer.above && kind == IS_LINK) {
    /* Through a link here a protected name would be made under another path. */
    rule.outcome = RULE_REFUSE;
  } else if (answer.mask != NAMES_NONE) {
    /* Where no mount can mask it, it is not made. */
    rule.outcome = is_bare() && place->grant == 0 ? RULE_REFUSE : RULE_MASK;
    rule.index = answer.mask | RULE_IS_MASK;
  } else if (answer.leaf != NAMES_NONE && !is_pointer_folder(&answer, kind)) {
    rule.outcome = answer.treatment == NAMES_MEDIATE ? RULE_MEDIATE : RULE_RECORD;
  }
  if (place->grant != 0) grant_lift(place, &answer, kind, &rule);
  return rule;
}

bool rule_wants_alone(const struct place *place) { return names_completes_git_dir(place->name, place->name_length); }

int rule_git_dir(const struct call *call, const struct place *place, enum rule_call what) {
  if (!names_completes_git_dir(place->name, place->name_length)) return 0;
  struct stat s;
  /* It is one already: what it holds was judged as it came. A socket is bound without asking, and makes none. */
  if (fstatat(place->folder, "HEAD", &s, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(s.st_mode)) return 0;
  const size_t folder = place->path_length - place->name_length - 1;
  struct names_found found;
  const enum names_move verdict = names_becomes_git_dir(observe.names, &observe.disk, place->folder, place->path, folder == 0 ? 1 : folder, &found);
  if (verdict == NAMES_MOVE_FREE) return 0;
  channel_event(call, EVENT_REFUSED, what, EACCES, verdict == NAMES_MOVE_REFUSED ? found.after.leaf : NAMES_NONE, place->path);
  return EACCES;
}

/* The plan's rules of Landlock say where files may be made: elsewhere the mounts have the same borders. */
size_t writable_root(const char *path, size_t length) {
  const struct plan *plan = observe.plan;
  const uint64_t make_file = 1u << 8;
  size_t longest = 0;
  for (size_t i = 0; i < plan->rule_count; i++) {
    const char *root = plan->rules[i].path;
    const size_t n = strlen(root);
    if ((plan->rules[i].rights & make_file) != 0 && n > longest && length > n && memcmp(path, root, n) == 0 && path[n] == '/') longest = n;
  }
  return longest;
}

bool is_writable(const char *path, size_t length) { return writable_root(path, length) > 0; }

bool may_change(const struct place *place) { return place->grant != 0 || is_writable(place->path, place->path_length); }
